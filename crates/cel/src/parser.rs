//! From words to a tree.
//!
//! In: an expression that a client sent. Out: its [`Ast`], macros expanded, or what is wrong with it. Never:
//! recurses deeper than [`NESTED_MAX`] expressions, or makes a tree higher than
//! [`HEIGHT_MAX`](crate::limits::HEIGHT_MAX).

use std::sync::Arc;

use crate::ast::{Ast, Entry, Expr, Field, Id, Literal, TooMuch};
use crate::issue::Issue;
use crate::lexer::{Lexer, Token};
use crate::limits::{EXPRESSION_CHARS_MAX, HEIGHT_MAX, NESTED_MAX, NODES_FREE};
use crate::macros;

pub(crate) struct Parser<'t> {
    pub ast: Ast,
    lexer: Lexer<'t>,
    token: Token,
    /// Where `token` begins.
    at: u32,
    depth: usize,
    /// What is wrong with macros, which does not end the reading.
    issues: Vec<Issue>,
    /// Which macros there are.
    pub has_optionals: bool,
    pub has_two_variables: bool,
    pub has_sort_by: bool,
    pub has_bindings: bool,
}

/// What a parse is of: which syntax and macros its environment has.
#[derive(Clone, Copy)]
pub(crate) struct Syntax {
    pub optionals: bool,
    pub two_variables: bool,
    pub sort_by: bool,
    pub bindings: bool,
}

/// Words that name nothing: the language keeps them.
pub(crate) const RESERVED: [&str; 17] = [
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
];

/// What is wrong, and how many nodes had been read.
pub(crate) type Unread = (Vec<Issue>, usize);

/// Reads an expression.
pub(crate) fn parse(text: &str, syntax: Syntax) -> Result<(Ast, Id), Unread> {
    let chars = text.chars().count();
    if chars > EXPRESSION_CHARS_MAX {
        let message =
            format!("expression code point size exceeds limit: size: {chars}, limit {EXPRESSION_CHARS_MAX}");
        return Err((vec![Issue::at(0, message)], 0));
    }
    let mut lexer = Lexer::new(text);
    let (token, at) = lexer.next().map_err(|issue| (vec![issue], 0))?;
    let mut parser = Parser {
        ast: Ast::new(chars + NODES_FREE),
        lexer,
        token,
        at,
        depth: 0,
        issues: Vec::new(),
        has_optionals: syntax.optionals,
        has_two_variables: syntax.two_variables,
        has_sort_by: syntax.sort_by,
        has_bindings: syntax.bindings,
    };
    let root = match parser.expr() {
        Ok(root) if parser.token == Token::End => root,
        Ok(_) => {
            let nodes = parser.ast.len();
            return Err((vec![parser.behind_the_end()], nodes));
        }
        Err(issue) => return Err((vec![issue], parser.ast.len())),
    };
    if parser.issues.is_empty() { Ok((parser.ast, root)) } else { Err((parser.issues, parser.ast.len())) }
}

impl Parser<'_> {
    fn bump(&mut self) -> Result<Token, Issue> {
        let (token, at) = self.lexer.next()?;
        self.at = at;
        Ok(std::mem::replace(&mut self.token, token))
    }

    fn is(&self, sign: &str) -> bool {
        matches!(self.token, Token::Sign(found) if found == sign)
    }

    /// Takes `sign` if it is next.
    fn takes(&mut self, sign: &str) -> Result<bool, Issue> {
        let is = self.is(sign);
        if is {
            self.bump()?;
        }
        Ok(is)
    }

    fn expect(&mut self, sign: &str) -> Result<(), Issue> {
        if self.takes(sign)? { Ok(()) } else { Err(self.unexpected()) }
    }

    fn unexpected(&self) -> Issue {
        Issue::syntax(self.at, format!("mismatched input '{}'", self.found()))
    }

    /// There is more where the expression is over: one thing too many, or something else altogether.
    fn behind_the_end(&mut self) -> Issue {
        let (mismatched, at) = (self.unexpected(), self.at);
        let found = self.found();
        match self.bump() {
            Ok(_) if self.token == Token::End => {
                Issue::syntax(at, format!("extraneous input '{found}' expecting <EOF>"))
            }
            _ => mismatched,
        }
    }

    fn found(&self) -> String {
        match &self.token {
            Token::End => "<EOF>".to_owned(),
            Token::Ident(name) | Token::Quoted(name) => name.to_string(),
            Token::Sign(sign) => (*sign).to_owned(),
            Token::Literal(_) | Token::Number(_) => "a literal".to_owned(),
        }
    }

    pub fn push(&mut self, expr: Expr, offset: u32) -> Result<Id, Issue> {
        self.ast.push(expr, offset).map_err(|why| too_much(why, offset))
    }

    /// Counts what is one step further, or an operator, towards how many may be within each other.
    fn stepped(&mut self, id: Id) -> Result<Id, Issue> {
        if self.ast.step(id) {
            Ok(id)
        } else {
            Err(Issue::nowhere("max recursion depth exceeded".to_owned()))
        }
    }

    pub fn copy(&mut self, id: Id) -> Result<Id, Issue> {
        let offset = self.ast.offset(id);
        self.ast.copy(id).map_err(|why| too_much(why, offset))
    }

    /// What a macro became, or something in its place, and its fault noted.
    fn expanded(&mut self, found: Result<Id, Issue>) -> Result<Id, Issue> {
        match found {
            Err(issue) if issue.is_macro => {
                let offset = issue.offset;
                self.issues.push(issue);
                self.push(Expr::Literal(Literal::Null), offset)
            }
            other => other,
        }
    }

    pub fn call(&mut self, function: &str, args: Vec<Id>, offset: u32) -> Result<Id, Issue> {
        self.push(Expr::Call { function: function.into(), target: None, args }, offset)
    }

    fn expr(&mut self) -> Result<Id, Issue> {
        if self.depth >= NESTED_MAX {
            return Err(Issue::at(self.at, format!("expression recursion limit exceeded: {NESTED_MAX}")));
        }
        self.depth += 1;
        let cond = self.logic("||", "_||_")?;
        let at = self.at;
        let it = if self.takes("?")? {
            let yes = self.logic("||", "_||_")?;
            self.expect(":")?;
            let no = self.expr()?;
            let found = self.call("_?_:_", vec![cond, yes, no], at)?;
            self.stepped(found)?
        } else {
            cond
        };
        self.depth -= 1;
        Ok(it)
    }

    /// A chain of `||` or `&&`, which becomes a balanced tree.
    fn logic(&mut self, sign: &'static str, function: &'static str) -> Result<Id, Issue> {
        let operand = |this: &mut Self| match sign {
            "||" => this.logic("&&", "_&&_"),
            _ => this.relation(),
        };
        let (mut terms, mut offsets) = (vec![operand(self)?], Vec::new());
        while self.is(sign) {
            offsets.push(self.at);
            self.bump()?;
            terms.push(operand(self)?);
        }
        match offsets.len() {
            0 => Ok(terms[0]),
            count => self.balance(function, &terms, &offsets, 0, count - 1),
        }
    }

    fn balance(
        &mut self,
        function: &str,
        terms: &[Id],
        offsets: &[u32],
        low: usize,
        high: usize,
    ) -> Result<Id, Issue> {
        let mid = (low + high).div_ceil(2);
        let left =
            if mid == low { terms[mid] } else { self.balance(function, terms, offsets, low, mid - 1)? };
        let right =
            if mid == high { terms[mid + 1] } else { self.balance(function, terms, offsets, mid + 1, high)? };
        self.call(function, vec![left, right], offsets[mid])
    }

    fn relation(&mut self) -> Result<Id, Issue> {
        self.chain(Self::sum, &["<", "<=", ">=", ">", "==", "!=", "in"])
    }

    fn sum(&mut self) -> Result<Id, Issue> {
        self.chain(Self::product, &["+", "-"])
    }

    fn product(&mut self) -> Result<Id, Issue> {
        self.chain(Self::unary, &["*", "/", "%"])
    }

    fn chain(&mut self, operand: fn(&mut Self) -> Result<Id, Issue>, signs: &[&str]) -> Result<Id, Issue> {
        let mut left = operand(self)?;
        while let Token::Sign(sign) = self.token
            && signs.contains(&sign)
        {
            let at = self.at;
            self.bump()?;
            let right = operand(self)?;
            let function = if sign == "in" { "@in".to_owned() } else { format!("_{sign}_") };
            left = self.call(&function, vec![left, right], at)?;
            left = self.stepped(left)?;
        }
        Ok(left)
    }

    fn unary(&mut self) -> Result<Id, Issue> {
        for (sign, function) in [("!", "!_"), ("-", "-_")] {
            if !self.is(sign) {
                continue;
            }
            let (at, mut count) = (self.at, 0usize);
            while self.takes(sign)? {
                count += 1;
            }
            if sign == "-" && count == 1 && matches!(self.token, Token::Number(_)) {
                let number = self.number(true, at)?;
                return self.members(number);
            }
            let operand = self.member()?;
            return if count % 2 == 0 { Ok(operand) } else { self.call(function, vec![operand], at) };
        }
        self.member()
    }

    fn number(&mut self, negative: bool, at: u32) -> Result<Id, Issue> {
        let Token::Number(digits) = self.bump()? else { return Err(self.unexpected()) };
        let sign = if negative { "-" } else { "" };
        let literal = if let Some(hex) = digits.strip_prefix("0x") {
            let read = i64::from_str_radix(&format!("{sign}{hex}"), 16);
            read.map(Literal::Int).map_err(|_| Issue::syntax(at, "invalid int literal".to_owned()))?
        } else if digits.contains(['.', 'e', 'E']) {
            let read: Result<f64, _> = format!("{sign}{digits}").parse();
            let read = read.ok().filter(|read| read.is_finite());
            Literal::Double(read.ok_or_else(|| Issue::syntax(at, "invalid double literal".to_owned()))?)
        } else {
            let read = format!("{sign}{digits}").parse();
            read.map(Literal::Int).map_err(|_| Issue::syntax(at, "invalid int literal".to_owned()))?
        };
        self.push(Expr::Literal(literal), at)
    }

    fn member(&mut self) -> Result<Id, Issue> {
        let primary = self.primary()?;
        self.members(primary)
    }

    /// Selections, calls and indexes after `operand`.
    fn members(&mut self, mut operand: Id) -> Result<Id, Issue> {
        loop {
            let at = self.at;
            if self.takes(".")? {
                operand = self.select(operand, at)?;
            } else if self.takes("[")? {
                let optional = self.is("?");
                if optional {
                    self.optional_sign()?;
                }
                let index = self.expr()?;
                self.expect("]")?;
                operand = self.call(if optional { "_[?_]" } else { "_[_]" }, vec![operand, index], at)?;
            } else {
                return Ok(operand);
            }
            operand = self.stepped(operand)?;
        }
    }

    fn optional_sign(&mut self) -> Result<(), Issue> {
        if !self.has_optionals {
            return Err(Issue::at(self.at, "unsupported syntax '?'".to_owned()));
        }
        self.bump().map(drop)
    }

    fn select(&mut self, operand: Id, at: u32) -> Result<Id, Issue> {
        let optional = self.is("?");
        if optional {
            self.optional_sign()?;
        }
        let name = self.name()?;
        if optional {
            let offset = self.at;
            let field = self.push(Expr::Literal(Literal::String(name)), offset)?;
            return self.call("_?._", vec![operand, field], at);
        }
        let open = self.at;
        if self.takes("(")? {
            let args = self.list_of(")")?;
            let found = macros::member(self, &name, operand, args, open);
            return self.expanded(found);
        }
        self.push(Expr::Select { operand, field: name, test: false }, at)
    }

    fn name(&mut self) -> Result<Arc<str>, Issue> {
        let at = self.at;
        match self.bump()? {
            Token::Ident(name) => Ok(name),
            Token::Quoted(name) => {
                self.issues.push(Issue::at(at, "unsupported syntax: '`'".to_owned()));
                Ok(name)
            }
            other => {
                self.token = other;
                Err(self.unexpected())
            }
        }
    }

    fn list_of(&mut self, close: &str) -> Result<Vec<Id>, Issue> {
        let mut items = Vec::new();
        while !self.takes(close)? {
            items.push(self.expr()?);
            if !self.takes(",")? {
                self.expect(close)?;
                break;
            }
            if close == ")" && self.is(")") {
                return Err(self.unexpected());
            }
        }
        Ok(items)
    }

    fn primary(&mut self) -> Result<Id, Issue> {
        let at = self.at;
        match self.token.clone() {
            Token::Literal(literal) => {
                self.bump()?;
                self.push(Expr::Literal(literal), at)
            }
            Token::Number(_) => self.number(false, at),
            Token::Sign("(") => {
                self.bump()?;
                let inner = self.expr()?;
                self.expect(")")?;
                Ok(inner)
            }
            Token::Sign("[") => {
                self.bump()?;
                self.list(at)
            }
            Token::Sign("{") => {
                self.bump()?;
                self.map(at)
            }
            Token::Sign(".") => {
                self.bump()?;
                self.ident(".")
            }
            Token::Ident(_) => self.ident(""),
            _ => Err(self.unexpected()),
        }
    }

    fn ident(&mut self, dot: &str) -> Result<Id, Issue> {
        let at = self.at;
        let word = self.name()?;
        if RESERVED.contains(&&*word) {
            return Err(Issue::syntax(at, format!("reserved identifier: {word}")));
        }
        let name: Arc<str> = format!("{dot}{word}").into();
        let open = self.at;
        if self.takes("(")? {
            let args = self.list_of(")")?;
            let found = macros::global(self, &name, args, open);
            return self.expanded(found);
        }
        if self.is("{") {
            self.bump()?;
            return self.message(name, open);
        }
        let ident = self.push(Expr::Ident(name), at)?;
        self.qualified(ident)
    }

    /// A name that goes on by dots may be a message's.
    fn qualified(&mut self, mut operand: Id) -> Result<Id, Issue> {
        while self.is(".") {
            let at = self.at;
            self.bump()?;
            operand = self.select(operand, at)?;
            operand = self.stepped(operand)?;
            if self.is("{")
                && let Some(name) = self.ast.qualified_name(operand)
            {
                let open = self.at;
                self.bump()?;
                return self.message(name.into(), open);
            }
        }
        Ok(operand)
    }

    fn list(&mut self, at: u32) -> Result<Id, Issue> {
        let mut items = Vec::new();
        while !self.takes("]")? {
            let optional = self.is("?");
            if optional {
                self.optional_sign()?;
            }
            items.push((self.expr()?, optional));
            if !self.takes(",")? {
                self.expect("]")?;
                break;
            }
        }
        self.push(Expr::List(items), at)
    }

    fn map(&mut self, at: u32) -> Result<Id, Issue> {
        let mut entries = Vec::new();
        while !self.takes("}")? {
            let optional = self.is("?");
            if optional {
                self.optional_sign()?;
            }
            let key = self.expr()?;
            self.expect(":")?;
            entries.push(Entry { key, value: self.expr()?, optional });
            if !self.takes(",")? {
                self.expect("}")?;
                break;
            }
        }
        self.push(Expr::Map(entries), at)
    }

    fn message(&mut self, name: Arc<str>, at: u32) -> Result<Id, Issue> {
        let mut fields = Vec::new();
        while !self.takes("}")? {
            let optional = self.is("?");
            if optional {
                self.optional_sign()?;
            }
            let field = self.name()?;
            let offset = self.at;
            self.expect(":")?;
            fields.push(Field { name: field, value: self.expr()?, optional, offset });
            if !self.takes(",")? {
                self.expect("}")?;
                break;
            }
        }
        self.push(Expr::Struct { name, fields }, at)
    }
}

fn too_much(why: TooMuch, offset: u32) -> Issue {
    let message = match why {
        TooMuch::Height => format!("expression recursion limit exceeded: {HEIGHT_MAX}"),
        TooMuch::Nodes => format!("expression has more than {NODES_FREE} nodes for its length"),
    };
    Issue::at(offset, message)
}
