//! A Rust file as what the architecture is judged by: the modules that it opens, what it imports, the types
//! that it defines and the paths that its code goes along.
//!
//! In: the text of a file. Out: a [`Module`], with those inside of it. Tests are left out. Never: types,
//! macros' results; who needs those asks the compiler.

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};

/// A module's items, as far as they matter here.
#[derive(Debug, Default, PartialEq)]
pub struct Module {
    /// Every `use`, one name each.
    pub imports: Vec<Import>,
    /// Names of what it defines, modules apart.
    pub defined: Vec<String>,
    /// Types that others can name: what it is called, and whether other crates may.
    pub types: Vec<(String, Reach)>,
    /// Modules in files of their own.
    pub opened: Vec<Opened>,
    /// Modules in braces.
    pub inside: Vec<(String, Module)>,
    /// Paths of two segments or more in code.
    pub paths: Vec<Vec<String>>,
}

/// `use a::b as c;` is path `a, b`, and name `c`; `use a::*;` is path `a`, and no name.
#[derive(Debug, PartialEq)]
pub struct Import {
    pub path: Vec<String>,
    pub name: Option<String>,
}

#[derive(Debug, PartialEq)]
pub struct Opened {
    pub name: String,
    pub in_tests: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// `pub`.
    World,
    /// `pub(crate)`, `pub(super)`, or nothing.
    Crate,
}

/// # Errors
/// What is no Rust.
pub fn read(text: &str) -> Result<Module, String> {
    let tokens: TokenStream = text.parse().map_err(|e| format!("{e}"))?;
    Ok(module(tokens))
}

fn module(tokens: TokenStream) -> Module {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let mut module = Module::default();
    let mut rest = &tokens[..];
    while !rest.is_empty() {
        rest = item(&mut module, rest);
    }
    module
}

/// Takes one item off.
fn item<'a>(module: &mut Module, tokens: &'a [TokenTree]) -> &'a [TokenTree] {
    let (in_tests, rest) = attributes(tokens);
    let (reach, rest) = visibility(rest);
    let head =
        rest.iter().position(|it| !is_any(it, &["const", "async", "unsafe", "extern"]) && !is_literal(it));
    let keyword = head.and_then(|at| Some((word(&rest[at])?, at)));
    let name = |at: usize| rest.get(at + 1).and_then(word);
    match keyword {
        Some((word, at)) if word == "use" => {
            let (body, after) = until(&rest[at + 1..], false);
            if !in_tests {
                imports(body, &mut Vec::new(), &mut module.imports);
            }
            after
        }
        Some((keyword, at)) if keyword == "mod" => {
            let (body, after) = until(&rest[at + 1..], true);
            let name = name(at).unwrap_or_default();
            match body.last() {
                Some(TokenTree::Group(group)) if !in_tests => {
                    module.inside.push((name, self::module(group.stream())));
                }
                Some(TokenTree::Group(_)) => {}
                _ => module.opened.push(Opened { name, in_tests }),
            }
            after
        }
        Some((keyword, at)) => {
            let is_value =
                is_any(&rest[0], &["const"]) && keyword != "fn" && keyword != "trait" && keyword != "impl";
            let in_braces = !is_value && !matches!(keyword.as_str(), "static" | "type");
            let (body, after) = until(rest, in_braces);
            if in_tests {
                return after;
            }
            let is_type = matches!(keyword.as_str(), "struct" | "enum" | "union" | "trait" | "type");
            if is_value {
                module.defined.push(keyword);
            } else if is_type || matches!(keyword.as_str(), "fn" | "static") {
                let name = name(at).unwrap_or_default();
                if is_type {
                    module.types.push((name.clone(), reach));
                }
                module.defined.push(name);
            }
            paths(body, module);
            after
        }
        None => &rest[rest.len().min(1)..],
    }
}

/// Whether the item is for tests alone, and where it begins.
fn attributes(mut tokens: &[TokenTree]) -> (bool, &[TokenTree]) {
    let mut in_tests = false;
    loop {
        match tokens {
            [hash, TokenTree::Group(group), rest @ ..] if is_punct(hash, '#') => {
                in_tests |= is_for_tests(group);
                tokens = rest;
            }
            [hash, bang, TokenTree::Group(_), rest @ ..] if is_punct(hash, '#') && is_punct(bang, '!') => {
                tokens = rest
            }
            _ => return (in_tests, tokens),
        }
    }
}

fn is_for_tests(attribute: &Group) -> bool {
    let text = attribute.stream().to_string().replace(' ', "");
    text == "test"
        || text.starts_with("cfg(test)")
        || text.starts_with("cfg(all(test")
        || text.starts_with("tokio::test")
}

fn visibility(tokens: &[TokenTree]) -> (Reach, &[TokenTree]) {
    match tokens {
        [first, TokenTree::Group(group), rest @ ..]
            if is_any(first, &["pub"]) && group.delimiter() == Delimiter::Parenthesis =>
        {
            (Reach::Crate, rest)
        }
        [first, rest @ ..] if is_any(first, &["pub"]) => (Reach::World, rest),
        _ => (Reach::Crate, tokens),
    }
}

/// Up to `;`, or to braces where those end it, that included.
fn until(tokens: &[TokenTree], in_braces: bool) -> (&[TokenTree], &[TokenTree]) {
    let ends = |it: &TokenTree| match it {
        TokenTree::Group(group) => in_braces && group.delimiter() == Delimiter::Brace,
        other => is_punct(other, ';'),
    };
    tokens.split_at(tokens.iter().position(ends).map_or(tokens.len(), |at| at + 1))
}

/// The names of a tree of imports.
fn imports(tokens: &[TokenTree], before: &mut Vec<String>, found: &mut Vec<Import>) {
    let depth = before.len();
    for tree in tokens.split(|it| is_punct(it, ',') || is_punct(it, ';')) {
        let mut renamed = None;
        let mut whole = !tree.is_empty();
        for (at, token) in tree.iter().enumerate() {
            match token {
                TokenTree::Ident(ident) if *ident == "as" => {
                    renamed = tree.get(at + 1).and_then(word);
                    break;
                }
                TokenTree::Ident(ident) if *ident == "self" && !before.is_empty() => {}
                TokenTree::Ident(ident) => before.push(ident.to_string()),
                TokenTree::Group(group) => {
                    let inner: Vec<TokenTree> = group.stream().into_iter().collect();
                    imports(&inner, before, found);
                    whole = false;
                }
                TokenTree::Punct(punct) if punct.as_char() == '*' => {
                    found.push(Import { path: before.clone(), name: None });
                    whole = false;
                }
                _ => {}
            }
        }
        if whole {
            found.push(Import { path: before.clone(), name: renamed.or_else(|| before.last().cloned()) });
        }
        before.truncate(depth);
    }
}

/// The paths of code, its own imports among them.
fn paths(tokens: &[TokenTree], module: &mut Module) {
    let mut at = 0;
    while at < tokens.len() {
        let (in_tests, item) = attributes(&tokens[at..]);
        if in_tests {
            at = tokens.len() - until(item, true).1.len();
            continue;
        }
        match &tokens[at] {
            TokenTree::Group(group) => {
                let inner: Vec<TokenTree> = group.stream().into_iter().collect();
                paths(&inner, module);
                at += 1;
            }
            token if is_any(token, &["use"]) => {
                let (body, rest) = until(&tokens[at + 1..], false);
                imports(body, &mut Vec::new(), &mut module.imports);
                at = tokens.len() - rest.len();
            }
            TokenTree::Ident(first) => {
                let mut path = vec![first.to_string()];
                at += 1;
                while let [a, b, TokenTree::Ident(next), ..] = &tokens[at..] {
                    if !is_punct(a, ':') || !is_punct(b, ':') {
                        break;
                    }
                    path.push(next.to_string());
                    at += 3;
                }
                if path.len() > 1 {
                    module.paths.push(path);
                }
            }
            _ => at += 1,
        }
    }
}

fn word(token: &TokenTree) -> Option<String> {
    match token {
        TokenTree::Ident(ident) => Some(ident.to_string()),
        _ => None,
    }
}

fn is_any(token: &TokenTree, words: &[&str]) -> bool {
    matches!(token, TokenTree::Ident(ident) if words.iter().any(|word| ident == word))
}

fn is_literal(token: &TokenTree) -> bool {
    matches!(token, TokenTree::Literal(_))
}

fn is_punct(token: &TokenTree, char: char) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == char)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> Vec<String> {
        text.split("::").map(str::to_owned).collect()
    }

    #[test]
    fn imports_are_one_name_each() {
        let module = read("use a::{self, b::{C, D as E}, f::*};\npub use crate::g;").unwrap();
        let named = |text: &str, name: &str| Import { path: path(text), name: Some(name.into()) };
        let all = Import { path: path("a::f"), name: None };
        let expected =
            [named("a", "a"), named("a::b::C", "C"), named("a::b::D", "E"), all, named("crate::g", "g")];
        assert_eq!(module.imports, expected);
    }

    #[test]
    fn items_are_found_with_their_reach_and_tests_are_not() {
        let module = read(
            "pub struct A(u8);\npub(crate) enum B { X }\ntype C = u8;\nconst D: [u8; 1] = { [0] };\npub async fn e() {}\n\
             mod f;\n#[cfg(test)] mod tests;\n#[cfg(test)] mod more { struct T; }\n#[cfg(test)] struct U;\nmod g { pub trait H {} }",
        )
        .unwrap();
        assert_eq!(module.defined, ["A", "B", "C", "D", "e"]);
        let types = [("A", Reach::World), ("B", Reach::Crate), ("C", Reach::Crate)];
        assert_eq!(module.types, types.map(|(name, reach)| (name.to_owned(), reach)));
        let opened = |name: &str, in_tests| Opened { name: name.into(), in_tests };
        assert_eq!(module.opened, [opened("f", false), opened("tests", true)]);
        assert_eq!(module.inside.len(), 1);
        assert_eq!(module.inside[0].1.types, [("H".to_owned(), Reach::World)]);
    }

    #[test]
    fn paths_are_found_in_code_and_in_macros() {
        let module = read("fn a() { use super::z; let x = vec![crate::b::C::new(d::E)]; f(x.y) }").unwrap();
        assert_eq!(module.paths, [path("crate::b::C::new"), path("d::E")]);
        assert_eq!(module.imports[0].path, path("super::z"));
    }
}
