//! Expressions that nobody would write: of every form in every other, from a seed.

use serde_json::{Value as Json, json};

use crate::schemas;

/// Forms within each other.
const DEPTH: u32 = 4;

struct Generator(u64);

pub fn cases(seed: u64, count: usize) -> Vec<Json> {
    let mut it = Generator(seed);
    let (schema, value) = (schemas::schema(), schemas::value());
    let case = |_| {
        let expr = match it.below(5) {
            0 => it.int(DEPTH),
            1 => it.text(DEPTH),
            2 => it.ints(DEPTH),
            _ => it.truth(DEPTH),
        };
        json!({"file": "generated", "expr": expr, "schema": schema, "self": value})
    };
    (0..count).map(case).collect()
}

impl Generator {
    /// A number below `most`, by a linear congruence.
    fn below(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % most
    }

    fn of(&mut self, choices: &[&str]) -> String {
        choices[self.below(choices.len() as u64) as usize].to_owned()
    }

    fn truth(&mut self, depth: u32) -> String {
        let Some(d) = depth.checked_sub(1) else {
            return self.of(&[
                "true",
                "false",
                "self.on",
                "has(self.name)",
                "!has(self.at)",
                "has(self.labels.app)",
            ]);
        };
        match self.below(20) {
            0 => format!("({} && {})", self.truth(d), self.truth(d)),
            1 => format!("({} || {})", self.truth(d), self.truth(d)),
            2 => format!("!{}", self.truth(d)),
            3 => format!("({} ? {} : {})", self.truth(d), self.truth(d), self.truth(d)),
            4 => {
                let sign = self.of(&["<", "<=", ">", ">=", "==", "!="]);
                format!("({} {sign} {})", self.int(d), self.int(d))
            }
            5 => {
                let sign = self.of(&["<", "==", "!=", ">"]);
                format!("({} {sign} {})", self.text(d), self.text(d))
            }
            6 => {
                let name = self.of(&["startsWith", "endsWith", "contains", "matches"]);
                format!("{}.{name}({})", self.text(d), self.text(d))
            }
            7 => {
                let name = self.of(&["all", "exists", "exists_one"]);
                format!("{}.{name}(x, {})", self.ints(d), self.with_x(d))
            }
            8 => {
                let name = self.of(&["all", "exists", "existsOne"]);
                format!("{}.{name}(i, x, i > 0 || {})", self.ints(d), self.with_x(d))
            }
            9 => format!("({} in {})", self.int(d), self.ints(d)),
            10 => format!("({} == {})", self.ints(d), self.ints(d)),
            11 => format!("(1.5 < double({}))", self.int(d)),
            12 => format!("optional.of({}).optMap(v, v > 1).orValue({})", self.int(d), self.truth(d)),
            13 => format!("self.labels[?{}].hasValue()", self.text(d)),
            14 => format!("(dyn({}) == dyn({}))", self.int(d), self.text(d)),
            15 => format!("sets.contains({}, {})", self.ints(d), self.ints(d)),
            16 => format!("(duration('1s') < self.__for__) == {}", self.truth(d)),
            17 => format!("(quantity('1Ki').compareTo(quantity({})) > 0)", self.text(d)),
            18 => format!("({} in {{'a': {}, 'b': {}}})", self.text(d), self.int(d), self.int(d)),
            _ => format!("self.ports.exists(p, p.name == {} && p.port > {})", self.text(d), self.int(d)),
        }
    }

    fn with_x(&mut self, depth: u32) -> String {
        match self.below(4) {
            0 => format!("x > {}", self.int(depth.min(1))),
            1 => format!("(x % 2 == 0 && {})", self.truth(depth.min(1))),
            2 => "1 / x > 0".to_owned(),
            _ => format!("{}.exists(y, y == x)", self.ints(depth.min(1))),
        }
    }

    fn int(&mut self, depth: u32) -> String {
        let Some(d) = depth.checked_sub(1) else {
            return self.of(&["0", "1", "-3", "7", "self.count", "self.numbers[1]", "self.ports[0].port"]);
        };
        match self.below(14) {
            0..3 => {
                let sign = self.of(&["+", "-", "*", "/", "%"]);
                format!("({} {sign} {})", self.int(d), self.int(d))
            }
            3 => format!("size({})", self.text(d)),
            4 => format!("{}.size()", self.ints(d)),
            5 => format!("({} ? {} : {})", self.truth(d), self.int(d), self.int(d)),
            6 => format!("{}[{}]", self.ints(d), self.int(d)),
            7 => format!("{}.sum()", self.ints(d)),
            8 => format!("{}.indexOf({})", self.text(d), self.text(d)),
            9 => format!("{}[?{}].orValue({})", self.ints(d), self.int(d), self.int(d)),
            10 => format!("int({})", self.text(d)),
            11 => format!("{{'a': {}, 'b': {}}}.a", self.int(d), self.int(d)),
            12 => format!("{}.first().orValue({})", self.ints(d), self.int(d)),
            _ => format!("-({})", self.int(d)),
        }
    }

    fn text(&mut self, depth: u32) -> String {
        let Some(d) = depth.checked_sub(1) else {
            return self.of(&[
                "''",
                "'a'",
                "'web'",
                "'äö€'",
                "self.name",
                "self.names[0]",
                "self.labels['app']",
            ]);
        };
        match self.below(11) {
            0 | 1 => format!("({} + {})", self.text(d), self.text(d)),
            2 => format!("({} ? {} : {})", self.truth(d), self.text(d), self.text(d)),
            3 => format!("string({})", self.int(d)),
            4 => format!("{}.upperAscii()", self.text(d)),
            5 => format!("{}.replace({}, {})", self.text(d), self.text(d), self.text(d)),
            6 => format!("{}.split({}).join('-')", self.text(d), self.text(d)),
            7 => format!("self.names.map(n, n + {}).join(',')", self.text(d)),
            8 => format!("'%s %d'.format([{}, {}])", self.text(d), self.int(d)),
            9 => format!("self.labels.?app.orValue({})", self.text(d)),
            _ => format!("{}.substring({})", self.text(d), self.int(d)),
        }
    }

    fn ints(&mut self, depth: u32) -> String {
        let Some(d) = depth.checked_sub(1) else {
            return self.of(&["[]", "[1, 2, 3]", "[0]", "self.numbers", "self.ports.map(p, p.port)"]);
        };
        match self.below(11) {
            0 => format!("[{}, {}]", self.int(d), self.int(d)),
            1 => format!("({} + {})", self.ints(d), self.ints(d)),
            2 => format!("{}.map(x, x * {})", self.ints(d), self.int(d)),
            3 => format!("{}.filter(x, {})", self.ints(d), self.with_x(d)),
            4 => format!("{}.map(x, {}, x + 1)", self.ints(d), self.with_x(d)),
            5 => format!("({} ? {} : {})", self.truth(d), self.ints(d), self.ints(d)),
            6 => format!("{}.transformList(i, x, i + x)", self.ints(d)),
            7 => format!("{}.sort().reverse()", self.ints(d)),
            8 => format!("{}.sortBy(x, -x).distinct()", self.ints(d)),
            9 => format!("[{}].flatten()", self.ints(d)),
            _ => format!("[{}, ?optional.of({})]", self.int(d), self.int(d)),
        }
    }
}
