//! The expressions of a policy, or of a webhook's conditions: whether they compile.
//!
//! In: texts, what each has to result in, those that are stored already. Out: causes in upstream's words.
//! Never: evaluates one; compiles another once no more causes are told.

use std::collections::BTreeSet;

use forebay_policy::{Compiler, Declared, Returns, Since};

use crate::field::{Causes, Path};
use crate::value::{Members, child, child_or_empty, list, objects, text};

/// Which of the expressions that are stored one is held against.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ExpressionPlace {
    Condition,
    /// A validation; variables are held against these, too.
    Validation,
    Message,
    Annotation,
    /// A mutation, by whichever type.
    Mutation,
}

/// See the module's doc.
pub struct Expressions<'a> {
    compiler: Compiler,
    /// Which variables there are, but for what only some expressions have.
    declared: Declared,
    stored: BTreeSet<(ExpressionPlace, &'a str)>,
}

impl<'a> Expressions<'a> {
    /// - `old`: the spec that is stored.
    /// - `composes`: whether there is `variables`, without a variable.
    pub fn of_policy(spec: &Members, old: Option<&'a Members>, composes: bool) -> Expressions<'a> {
        let declared = Declared {
            params: child(spec, "paramKind").is_some(),
            authorizer: true,
            variables: composes || !list(spec, "variables").is_empty(),
            mutations: false,
        };
        let mut stored = BTreeSet::new();
        if let Some(old) = old {
            let mut add = |of, place, name| {
                stored.extend(objects(old, of).map(|it| (place, text(it, name))));
            };
            add("matchConditions", ExpressionPlace::Condition, "expression");
            add("validations", ExpressionPlace::Validation, "expression");
            add("validations", ExpressionPlace::Message, "messageExpression");
            add("auditAnnotations", ExpressionPlace::Annotation, "valueExpression");
            stored.extend(objects(old, "mutations").map(|it| {
                (ExpressionPlace::Mutation, text(child_or_empty(it, "applyConfiguration"), "expression"))
            }));
        }
        Expressions { compiler: Compiler::new(declared), declared, stored }
    }

    /// - `old`: the webhooks that are stored.
    pub fn of_webhooks(old: Option<&'a Members>) -> Expressions<'a> {
        let declared = Declared { authorizer: true, ..Declared::default() };
        let hooks = old.into_iter().flat_map(|old| objects(old, "webhooks"));
        let conditions = hooks.flat_map(|hook| objects(hook, "matchConditions"));
        let stored = conditions.map(|it| (ExpressionPlace::Condition, text(it, "expression"))).collect();
        Expressions { compiler: Compiler::new(declared), declared, stored }
    }

    fn since(&self, place: ExpressionPlace, text: &str) -> Since {
        // Once: for an expression, in a set.
        if self.stored.contains(&(place, text)) { Since::Stored } else { Since::New }
    }

    /// A match condition.
    pub fn condition(&mut self, expression: &str, at: &Path<'_>, causes: &mut Causes) {
        let declared = Declared { variables: false, ..self.declared };
        let expression = expression.trim();
        let since = self.since(ExpressionPlace::Condition, expression);
        self.check(expression, expression, Returns::Bool, since, declared, at, causes);
    }

    /// A variable.
    pub fn variable(&mut self, name: &str, expression: &str, at: &Path<'_>, causes: &mut Causes) {
        if causes.is_full() {
            return;
        }
        let since = self.since(ExpressionPlace::Validation, expression);
        if let Err(why) = self.compiler.check_variable(name, expression, since) {
            causes.invalid(at, expression, &why);
        }
    }

    /// A validation.
    pub fn validation(&mut self, expression: &str, at: &Path<'_>, causes: &mut Causes) {
        let since = self.since(ExpressionPlace::Validation, expression);
        self.check(expression, expression, Returns::Bool, since, self.declared, at, causes);
    }

    /// What makes a message.
    pub fn message(&mut self, expression: &str, at: &Path<'_>, causes: &mut Causes) {
        let since = self.since(ExpressionPlace::Message, expression);
        let declared = Declared { authorizer: false, ..self.declared };
        self.check(expression, expression, Returns::Text, since, declared, at, causes);
    }

    /// What makes an annotation of an audit event.
    pub fn annotation(&mut self, expression: &str, at: &Path<'_>, causes: &mut Causes) {
        let since = self.since(ExpressionPlace::Annotation, expression);
        self.check(expression.trim(), expression, Returns::TextOrNull, since, self.declared, at, causes);
    }

    /// What makes a patch.
    pub fn mutation(&mut self, expression: &str, returns: Returns, at: &Path<'_>, causes: &mut Causes) {
        let since = self.since(ExpressionPlace::Mutation, expression);
        let declared = Declared { mutations: true, ..self.declared };
        self.check(expression.trim(), expression.trim(), returns, since, declared, at, causes);
    }

    /// - `shown`: the text as a cause has it.
    #[expect(clippy::too_many_arguments, reason = "each is a word of one question")]
    fn check(
        &mut self,
        expression: &str,
        shown: &str,
        returns: Returns,
        since: Since,
        declared: Declared,
        at: &Path<'_>,
        causes: &mut Causes,
    ) {
        if causes.is_full() {
            return;
        }
        if let Err(why) = self.compiler.check(expression, returns, since, declared) {
            causes.invalid(at, shown, &why);
        }
    }
}
