//! The expressions of a configuration: of a token's claims, and of the user that they make.
//!
//! In: texts; claims or a user, as trees. Out: what they come to, or upstream's words for what is wrong.
//! Never: more than an evaluation may cost.
//!
//! Source: apiserver v0.36.3 `pkg/authentication/cel/{compile,mapper}.go`; `oidc.go` there
//! (`convertCELValueToStringList`).

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use forebay_apimachinery::Caller;
use forebay_cel::decl::escape;
use forebay_cel::value::List;
use forebay_cel::{Activation, Compiled, Env, Fields, Program, StructType, Type, Value};
use serde_json::{Map, Number, Value as Json, json};

use crate::limits::{ESCAPED_DEPTH, EXPRESSION_COST_MAX};

/// What an expression is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum About {
    Claims,
    User,
}

/// What it has to result in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Returns {
    Anything,
    Bool,
}

/// An expression as it is evaluated.
pub struct Expression {
    pub text: String,
    program: Program,
}

/// Which claims an expression names that count for others.
#[derive(Clone, Copy, Debug, Default)]
pub struct NamedClaims {
    pub email: bool,
    pub email_verified: bool,
}

impl fmt::Debug for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Expression").field(&self.text).finish()
    }
}

impl Expression {
    /// # Errors
    /// Upstream's words.
    pub fn new(text: &str, about: About, returns: Returns) -> Result<(Expression, NamedClaims), String> {
        let compiled = env(about).compile(text).map_err(|issues| format!("compilation failed: {issues}"))?;
        if returns == Returns::Bool && *compiled.output() != Type::Bool {
            return Err("must evaluate to bool".to_owned());
        }
        let program = compiled.program().map_err(|why| format!("program instantiation failed: {why}"))?;
        let names = NamedClaims::of(&compiled);
        Ok((Expression { text: text.to_owned(), program }, names))
    }

    /// Whether it holds.
    ///
    /// - `of`: claims or a user.
    ///
    /// # Errors
    /// It has no value, or another one.
    pub fn holds(&self, of: &Json) -> Result<bool, String> {
        self.eval(of, |value| match value {
            Value::Bool(holds) => Ok(*holds),
            _ => Err("validation expression must return a boolean".to_owned()),
        })
    }

    /// The text that it comes to, `None` for what is none.
    ///
    /// # Errors
    /// It has no value.
    pub fn text(&self, of: &Json) -> Result<Option<String>, String> {
        self.eval(of, |value| match value {
            Value::String(text) => Ok(Some(text.to_string())),
            _ => Ok(None),
        })
    }

    /// The texts that it comes to, without those that are empty; one alone is a list of one.
    ///
    /// # Errors
    /// It has no value, or something that is no text in it.
    pub fn texts(&self, of: &Json) -> Result<Result<Vec<String>, &'static str>, String> {
        self.eval(of, |value| Ok(texts(value)))
    }

    fn eval<T>(&self, of: &Json, take: impl FnOnce(&Value<'_>) -> Result<T, String>) -> Result<T, String> {
        let variables = [Some(Value::from_tree(of))];
        let with = Activation { variables: &variables, ..Activation::default() };
        match self.program.eval(with, EXPRESSION_COST_MAX).result {
            Ok(value) => take(&value),
            Err(why) => Err(format!("expression '{}' resulted in error: {why}", self.text)),
        }
    }
}

impl NamedClaims {
    fn of(compiled: &Compiled) -> NamedClaims {
        NamedClaims {
            email: compiled.selects("claims", "email"),
            email_verified: compiled.selects("claims", "email_verified"),
        }
    }
}

fn texts(value: &Value<'_>) -> Result<Vec<String>, &'static str> {
    const NO_TEXTS: &str = "expression must return a string or a list of strings";
    let all = match value {
        Value::Null => return Ok(Vec::new()),
        Value::String(text) => vec![text.to_string()],
        Value::List(List::Tree(items, _)) => {
            let each = items.iter().map(|item| item.as_str().map(str::to_owned));
            each.collect::<Option<Vec<_>>>().ok_or(NO_TEXTS)?
        }
        Value::List(List::Owned(items, _)) => {
            let each = items.iter().map(|item| match item {
                Value::String(text) => Some(text.to_string()),
                _ => None,
            });
            each.collect::<Option<Vec<_>>>().ok_or(NO_TEXTS)?
        }
        _ => return Err(NO_TEXTS),
    };
    Ok(all.into_iter().filter(|text| !text.is_empty()).collect())
}

fn env(about: About) -> Env {
    // What is configured may use all that there is, as what is stored may.
    let env = Env::new(u32::MAX);
    match about {
        About::Claims => env.with("claims", Type::map(Type::String, Type::Any)),
        About::User => env.with("user", user_type()),
    }
}

fn user_type() -> Type {
    let texts = || Type::list(Type::String);
    let fields: BTreeMap<Arc<str>, Type> = [
        ("username", Type::String),
        ("uid", Type::String),
        ("groups", texts()),
        ("extra", Type::map(Type::String, texts())),
    ]
    .into_iter()
    .map(|(name, of)| (name.into(), of))
    .collect();
    Type::Struct(Arc::new(StructType { name: "kubernetes.UserInfo".into(), fields: Fields::Known(fields) }))
}

/// Claims as expressions see them: all numbers are doubles, as Go reads them, and what has a name that cannot
/// be selected is there by the name that can be, `a__dot__b`, as well, [`ESCAPED_DEPTH`] deep: each level may
/// double the tree. Upstream finds it when it is asked for; here whoever counts members counts both.
pub fn claims_value(claims: &Map<String, Json>) -> Json {
    seen_object(claims, ESCAPED_DEPTH)
}

fn seen_object(members: &Map<String, Json>, escaped_depth: u32) -> Json {
    let mut seen = Map::new();
    for (name, value) in members {
        let value = seen_value(value, escaped_depth.saturating_sub(1));
        let other = escape(name).filter(|other| other != name);
        if let Some(other) = other.filter(|_| escaped_depth > 0) {
            seen.insert(other, value.clone());
        }
        seen.insert(name.clone(), value);
    }
    Json::Object(seen)
}

/// No deeper than what was read.
fn seen_value(value: &Json, escaped_depth: u32) -> Json {
    match value {
        Json::Number(number) => {
            let double = number.as_f64().and_then(Number::from_f64);
            double.map_or(Json::Null, Json::Number)
        }
        Json::Array(items) => Json::Array(items.iter().map(|item| seen_value(item, escaped_depth)).collect()),
        Json::Object(members) => seen_object(members, escaped_depth),
        other => other.clone(),
    }
}

/// A user as expressions see it.
pub fn user_value(user: &Caller) -> Json {
    let user = json!({ "username": user.name, "uid": user.uid, "groups": user.groups, "extra": user.extra });
    seen_value(&user, ESCAPED_DEPTH)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, about: About, of: &Json, want: &str) {
        let got = match Expression::new(text, about, Returns::Anything) {
            Err(why) => format!("REFUSED {why}"),
            Ok((expression, _)) => format!("{:?}", expression.texts(of)),
        };
        assert_eq!(got, want, "{text}");
    }

    #[test]
    fn claims_and_users_are_looked_into_as_upstream_does() {
        let claims = json!({
            "sub": "ann", "n": 1, "a.b/c": { "d-e": "v" }, "groups": ["a", "", "b"], "mixed": ["a", 1], "o": { "k": "v" }, "nil": null,
        });
        let claims = claims_value(claims.as_object().expect("an object"));
        let check_claims = |text: &str, want: &str| check(text, About::Claims, &claims, want);
        check_claims("'x:' + claims.sub", r#"Ok(Ok(["x:ann"]))"#);
        check_claims("claims.groups", r#"Ok(Ok(["a", "b"]))"#);
        // What a claim is nobody knows beforehand: only what is called dynamic is looked through.
        check_claims("dyn(claims.groups).map(g, 'p:' + g)", r#"Ok(Ok(["p:a", "p:", "p:b"]))"#);
        check_claims("claims.o.k", r#"Ok(Ok(["v"]))"#);
        check_claims("claims.?missing.orValue('none')", r#"Ok(Ok(["none"]))"#);
        check_claims("claims.nil", "Ok(Ok([]))");
        for way in ["claims.a__dot__b__slash__c.d__dash__e", "claims['a.b/c']['d-e']"] {
            check_claims(way, r#"Ok(Ok(["v"]))"#);
        }
        check_claims("claims.n + 0.5 == 1.5 ? 'double' : 'whole'", r#"Ok(Ok(["double"]))"#);
        let no_texts = r#"Ok(Err("expression must return a string or a list of strings"))"#;
        check_claims("claims.mixed", no_texts);
        check_claims("claims.n", no_texts);
        check_claims(
            "claims.missing",
            r#"Err("expression 'claims.missing' resulted in error: no such key: missing")"#,
        );
        let user = user_value(&Caller { name: "ann".into(), groups: vec!["g".into()], ..Caller::default() });
        check("user.groups + [user.username, user.uid]", About::User, &user, r#"Ok(Ok(["g", "ann"]))"#);
        check("has(user.uid) ? 'said' : 'not'", About::User, &user, r#"Ok(Ok(["said"]))"#);
    }

    #[test]
    fn what_cannot_be_asked_is_refused_when_it_is_read() {
        let refused = |text: &str, about, returns| Expression::new(text, about, returns).expect_err(text);
        assert!(refused("user.name", About::User, Returns::Anything).contains("undefined field 'name'"));
        assert!(refused("user", About::Claims, Returns::Anything).contains("undeclared reference to 'user'"));
        assert!(refused("claims.", About::Claims, Returns::Anything).contains("Syntax error"));
        let ranged = refused("claims.groups.map(g, g)", About::Claims, Returns::Anything);
        assert!(ranged.contains("cannot be range of a comprehension"), "{ranged}");
        for text in ["claims.is", "'true'"] {
            assert_eq!(refused(text, About::Claims, Returns::Bool), "must evaluate to bool");
        }
    }

    #[test]
    fn the_claims_that_are_named_are_known_however_they_are() {
        for (text, email, verified) in [
            ("claims.email", true, false),
            ("claims.?email.orValue('')", true, false),
            ("has(claims.email) && claims.email_verified", true, true),
            ("[claims.sub].exists(x, x == claims.email)", true, false),
            ("claims.sub", false, false),
            ("claims['email']", false, false),
            ("claims.o.email", false, false),
        ] {
            let (_, names) = Expression::new(text, About::Claims, Returns::Anything).expect(text);
            assert_eq!((names.email, names.email_verified), (email, verified), "{text}");
        }
    }
}
