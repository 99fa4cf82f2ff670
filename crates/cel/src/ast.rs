//! What an expression is once it is read: an arena of nodes, its macros expanded.
//!
//! In: what the parser found. Out: nodes by number, each with its place in the text. Never: a type.

use std::sync::Arc;

use crate::limits::{HEIGHT_MAX, NAME_PARTS_MAX, NESTED_MAX};

/// The number of a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Id(u32);

impl Id {
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Literal {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    String(Arc<str>),
    Bytes(Arc<[u8]>),
}

#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub key: Id,
    pub value: Id,
    pub optional: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Field {
    pub name: Arc<str>,
    pub value: Id,
    pub optional: bool,
    pub offset: u32,
}

#[derive(Clone, Debug)]
pub(crate) struct Comprehension {
    pub range: Id,
    pub var: Arc<str>,
    pub var2: Option<Arc<str>>,
    pub accu: Arc<str>,
    pub init: Id,
    pub condition: Id,
    pub step: Id,
    pub result: Id,
}

#[derive(Clone, Debug)]
pub(crate) enum Expr {
    Literal(Literal),
    Ident(Arc<str>),
    Select {
        operand: Id,
        field: Arc<str>,
        test: bool,
    },
    Call {
        function: Arc<str>,
        target: Option<Id>,
        args: Vec<Id>,
    },
    /// Elements, and whether each is optional.
    List(Vec<(Id, bool)>),
    Map(Vec<Entry>),
    Struct {
        name: Arc<str>,
        fields: Vec<Field>,
    },
    Comprehension(Box<Comprehension>),
}

/// Why a node is not made.
#[derive(Debug)]
pub(crate) enum TooMuch {
    Height,
    Nodes,
}

struct Node {
    expr: Expr,
    /// In code points.
    offset: u32,
    height: u32,
    /// How many steps, operators and conditions are within each other here, as cel-go's parser counts them.
    steps: u32,
}

pub(crate) struct Ast {
    nodes: Vec<Node>,
    nodes_max: usize,
}

impl Ast {
    pub fn new(nodes_max: usize) -> Ast {
        Ast { nodes: Vec::new(), nodes_max }
    }

    pub fn push(&mut self, expr: Expr, offset: u32) -> Result<Id, TooMuch> {
        if self.nodes.len() >= self.nodes_max {
            return Err(TooMuch::Nodes);
        }
        let (mut below, mut steps) = (0, 0);
        children(&expr, |child| {
            let child = &self.nodes[child.index()];
            below = below.max(child.height);
            steps = steps.max(child.steps);
        });
        if below >= HEIGHT_MAX {
            return Err(TooMuch::Height);
        }
        self.nodes.push(Node { expr, offset, height: below + 1, steps });
        Ok(Id(self.nodes.len() as u32 - 1))
    }

    /// Counts a node as a step, an operator or a condition; whether there may be as many within each other.
    pub fn step(&mut self, id: Id) -> bool {
        let node = &mut self.nodes[id.index()];
        node.steps += 1;
        node.steps as usize <= NESTED_MAX
    }

    pub fn expr(&self, id: Id) -> &Expr {
        &self.nodes[id.index()].expr
    }

    pub fn offset(&self, id: Id) -> u32 {
        self.nodes[id.index()].offset
    }

    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    pub fn height(&self, id: Id) -> u32 {
        self.nodes[id.index()].height
    }

    /// The names that a chain of selections is made of, joined by dots, if it is nothing else and could be a
    /// name.
    pub fn qualified_name(&self, id: Id) -> Option<String> {
        let (mut names, mut at) = (Vec::new(), id);
        loop {
            match self.expr(at) {
                Expr::Ident(name) => {
                    names.push(&**name);
                    break;
                }
                Expr::Select { operand, field, test: false } if names.len() < NAME_PARTS_MAX => {
                    names.push(&**field);
                    at = *operand;
                }
                _ => return None,
            }
        }
        names.reverse();
        Some(names.join("."))
    }

    /// The same tree once more, for a macro that has it twice.
    pub fn copy(&mut self, id: Id) -> Result<Id, TooMuch> {
        let expr = match self.expr(id).clone() {
            same @ (Expr::Literal(_) | Expr::Ident(_)) => same,
            Expr::Select { operand, field, test } => {
                Expr::Select { operand: self.copy(operand)?, field, test }
            }
            Expr::Call { function, target, args } => {
                let target = target.map(|target| self.copy(target)).transpose()?;
                let args = args.into_iter().map(|arg| self.copy(arg)).collect::<Result<_, _>>()?;
                Expr::Call { function, target, args }
            }
            Expr::List(items) => Expr::List(
                items
                    .into_iter()
                    .map(|(item, optional)| Ok((self.copy(item)?, optional)))
                    .collect::<Result<_, _>>()?,
            ),
            Expr::Map(entries) => {
                let copy = |entry: Entry| {
                    Ok(Entry { key: self.copy(entry.key)?, value: self.copy(entry.value)?, ..entry })
                };
                Expr::Map(entries.into_iter().map(copy).collect::<Result<_, _>>()?)
            }
            Expr::Struct { name, fields } => {
                let copy = |field: Field| Ok(Field { value: self.copy(field.value)?, ..field });
                Expr::Struct { name, fields: fields.into_iter().map(copy).collect::<Result<_, _>>()? }
            }
            Expr::Comprehension(it) => Expr::Comprehension(Box::new(Comprehension {
                range: self.copy(it.range)?,
                init: self.copy(it.init)?,
                condition: self.copy(it.condition)?,
                step: self.copy(it.step)?,
                result: self.copy(it.result)?,
                ..*it
            })),
        };
        self.push(expr, self.offset(id))
    }

    /// Every node with its number.
    pub fn nodes(&self) -> impl Iterator<Item = (Id, &Expr)> {
        self.nodes.iter().enumerate().map(|(at, node)| (Id(at as u32), &node.expr))
    }
}

/// Calls `each` with what a node has right below it.
pub(crate) fn children(expr: &Expr, mut each: impl FnMut(Id)) {
    match expr {
        Expr::Literal(_) | Expr::Ident(_) => {}
        Expr::Select { operand, .. } => each(*operand),
        Expr::Call { target, args, .. } => target.iter().chain(args).for_each(|id| each(*id)),
        Expr::List(items) => items.iter().for_each(|(id, _)| each(*id)),
        Expr::Map(entries) => entries.iter().for_each(|entry| {
            each(entry.key);
            each(entry.value);
        }),
        Expr::Struct { fields, .. } => fields.iter().for_each(|field| each(field.value)),
        Expr::Comprehension(it) => {
            for id in [it.range, it.init, it.condition, it.step, it.result] {
                each(id);
            }
        }
    }
}
