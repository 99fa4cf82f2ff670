//! Expressions that select devices: what kube-apiserver v1.36.3 takes, and what it says of the others.
//!
//! In: expressions. Out: the first line of what is wrong with each, as a real server said it. Never: a
//! device.

use crate::field::{Causes, Path};
use crate::resource::config::Origin;
use crate::resource::expression::{Allowance, validate};

/// What is said of an expression, its value left out; empty if nothing is.
fn said(expression: &str, allowance: &Allowance) -> String {
    let mut causes = Causes::default();
    validate(expression, Origin::New, allowance, &Path::root("e"), &mut causes);
    let found = causes.into_vec();
    let said = found.first().map(|cause| format!("{} {}", cause.reason.as_str(), cause.message));
    let said = said.unwrap_or_default().replace(&format!("Invalid value: {expression:?}: "), "");
    said.lines().next().unwrap_or_default().chars().take(150).collect()
}

#[test]
fn an_expression_is_judged_as_kube_apiserver_judges_it() {
    let rows = [
        (r#"device.driver == "d""#, ""),
        ("device", "FieldValueInvalid must evaluate to bool or the unknown type, not kubernetes.DRADevice"),
        ("device.driver", "FieldValueInvalid must evaluate to bool or the unknown type, not string"),
        (
            r#"device.drivers == "a""#,
            "FieldValueInvalid compilation failed: ERROR: <input>:1:7: undefined field 'drivers'",
        ),
        (r#"device.attributes["a"].b"#, ""),
        (r#"device.attributes["a"].b == 1"#, ""),
        ("device.attributes.a.b == 1", ""),
        (
            r#"device.attributes["a"]"#,
            "FieldValueInvalid must evaluate to bool or the unknown type, not map(string, google.protobuf.Any)",
        ),
        (
            r#"device.capacity["a"].b"#,
            "FieldValueInvalid must evaluate to bool or the unknown type, not kubernetes.Quantity",
        ),
        (r#"device.capacity["a"].b.isGreaterThan(quantity("1"))"#, ""),
        ("device.allowMultipleAllocations", ""),
        (r#"device.attributes["a"].b.isGreaterThan(semver("1.0.0"))"#, ""),
        (r#"cel.bind(dra, device.attributes["a"], dra.b && dra.c)"#, ""),
        (
            "cel.bind(1, device, true)",
            "FieldValueInvalid compilation failed: ERROR: <input>:1:10: cel.bind() variable names must be simple identifiers",
        ),
        (
            "cel.bind(a.b, device, true)",
            "FieldValueInvalid compilation failed: ERROR: <input>:1:11: cel.bind() variable names must be simple identifiers",
        ),
        (r#"cel.bind(a, device.driver, a == "b")"#, ""),
        (
            r#"x.bind(a, device.driver, a == "b")"#,
            "FieldValueInvalid compilation failed: ERROR: <input>:1:1: undeclared reference to 'x' (in container '')",
        ),
        (
            "bind(a, 1, a)",
            "FieldValueInvalid compilation failed: ERROR: <input>:1:5: undeclared reference to 'bind' (in container '')",
        ),
        (
            r#"device.attributes["a"].b.includes("c")"#,
            "FieldValueInvalid compilation failed: ERROR: <input>:1:34: undeclared reference to 'includes' (in container '')",
        ),
        (r#"device.attributes["a"].b + "x" == "y""#, ""),
        (
            r#"device.attributes["a"].b + 1"#,
            "FieldValueInvalid must evaluate to bool or the unknown type, not int",
        ),
        (r#""a" in device.attributes"#, ""),
        (r#"device.attributes.exists(k, k == "a")"#, ""),
        ("device.attributes.all(k, device.attributes[k].all(l, device.attributes[k][l] == l))", ""),
        ("device.attributes.all(k, device.attributes[k].all(l, device.attributes[k][l].matches(l)))", ""),
        (
            "device.attributes.all(a, device.attributes.all(b, device.attributes.all(c, device.attributes.all(d, a + b == c + d))))",
            "FieldValueForbidden Forbidden: too complex, exceeds cost limit",
        ),
        (
            r#"device.capacity.all(a, device.capacity[a].all(b, device.capacity[a][b].compareTo(quantity("1Gi")) > 0))"#,
            "",
        ),
        ("device.capacity.all(a, device.capacity.all(b, device.capacity.all(c, a + b != c)))", ""),
        (r#"device.attributes["a"].b.matches("a.*b")"#, ""),
        (r#"device.attributes["a"].b.contains("c") && device.driver.startsWith("a")"#, ""),
        (r#"device.driver.matches("^[a-z]+$")"#, ""),
        (r#"device.attributes["a"].?b.orValue(true)"#, ""),
        (
            "device.?attributes",
            "FieldValueInvalid must evaluate to bool or the unknown type, not optional_type(map(string, map(string, google.protobuf.Any)))",
        ),
        ("has(device.attributes)", ""),
        (
            "has(device.foo)",
            "FieldValueInvalid compilation failed: ERROR: <input>:1:4: undefined field 'foo'",
        ),
        (
            r#"duration("x") > duration("1h")"#,
            "FieldValueInvalid compilation failed: ERROR: <input>:1:10: invalid duration argument",
        ),
        (
            r#"matches("a","(")"#,
            "InternalError Internal error: program instantiation failed: error parsing regexp: missing closing ): `(`",
        ),
        (
            r#"device.driver.matches("(")"#,
            "FieldValueInvalid compilation failed: ERROR: <input>:1:23: invalid matches argument",
        ),
        (
            r#"device.attributes["a"].b.exists(x, x == 1)"#,
            "FieldValueInvalid compilation failed: ERROR: <input>:1:23: expression of type 'any' cannot be range of a comprehension (must be list, map, or dynamic)",
        ),
        (
            r#"device.attributes["a"].b.c.d"#,
            "FieldValueInvalid must evaluate to bool or the unknown type, not dyn",
        ),
        (r#"[1,2].exists(x, x == device.attributes["a"].b)"#, ""),
        (r#"device.attributes["a"].b.size() > 3"#, ""),
        ("size(device.driver) > 3", ""),
        ("size(device.attributes)", "FieldValueInvalid must evaluate to bool or the unknown type, not int"),
        ("type(device) == string", "FieldValueForbidden Forbidden: too complex, exceeds cost limit"),
        ("device == device", ""),
        ("device.attributes == device.attributes", ""),
        ("true", ""),
        ("1", "FieldValueInvalid must evaluate to bool or the unknown type, not int"),
        (r#"device.attributes["a"].b ? true : false"#, ""),
        (
            r#"device.attributes["a"].b ? 1 : 2"#,
            "FieldValueInvalid must evaluate to bool or the unknown type, not int",
        ),
        ("dyn(1)", "FieldValueInvalid must evaluate to bool or the unknown type, not dyn"),
        (
            r#"device.attributes["a"].map(x, x)"#,
            "FieldValueInvalid must evaluate to bool or the unknown type, not list(string)",
        ),
        (r#"semver("1.2.3").isLessThan(device.attributes["a"].b)"#, ""),
        (
            "[device.driver, 1]==[]",
            "FieldValueInvalid compilation failed: ERROR: <input>:1:17: expected type 'string' but found 'int'",
        ),
        (
            r#"timestamp("x") < timestamp("y")"#,
            "FieldValueInvalid compilation failed: ERROR: <input>:1:11: invalid timestamp argument",
        ),
        (r#"device.attributes["a"].b in ["x"]"#, ""),
        (r#"string(device.attributes["a"].b) == "x""#, ""),
        (r#"device.attributes["a"]["b"].lowerAscii() == "x""#, ""),
        (r#"device.attributes["a"].b == quantity("1")"#, ""),
        (r#"device.attributes["a"].b < 1"#, ""),
        (r#"device.attributes["a"].b.lowerAscii().replace("a","b") == "c""#, ""),
        (r#"device.attributes["a"].b && device.attributes["a"].c || !device.attributes["a"].d"#, ""),
        ("format.dns1123Label().validate(device.driver).hasValue()", ""),
        (r#"device.driver.split(".").sortBy(x, x)[0] == "a""#, ""),
        ("device.attributes.transformList(k, v, v.b)[0] == 1", ""),
        (r#"optional.of(device.driver).optMap(v, v == "a").orValue(false)"#, ""),
        ("device.capacity.all(a0, true)", ""),
        (r#"device.attributes.all(a0, device.attributes[a0].all(b0, device.driver == "a"))"#, ""),
        ("device.capacity.all(a1, device.capacity.all(a0, true))", ""),
        ("device.capacity.all(a2, device.capacity.all(a1, device.capacity.all(a0, true)))", ""),
        (
            "device.capacity.all(a3, device.capacity.all(a2, device.capacity.all(a1, device.capacity.all(a0, true))))",
            "FieldValueForbidden Forbidden: too complex, exceeds cost limit",
        ),
        (
            "device.capacity.all(a4, device.capacity.all(a3, device.capacity.all(a2, device.capacity.all(a1, device.capacity.all(a0, true)))))",
            "FieldValueForbidden Forbidden: too complex, exceeds cost limit",
        ),
    ];
    for (expression, want) in rows {
        assert_eq!(said(expression, &Allowance::new()), want, "{expression}");
    }
}

#[test]
fn an_expression_may_cost_as_much_as_with_kube_apiserver_and_no_more() {
    const KEYS: &str = "device.attributes.all(a, device.attributes.all(b, device.attributes.all(c, TERMS)))";
    const CAPACITIES: &str =
        "device.capacity.all(a, device.capacity.all(b, device.capacity[b].all(c, TERMS)))";
    const NAMES: &str =
        "device.attributes.all(a, device.attributes.all(b, device.attributes[b].all(c, TERMS)))";
    // How often a term may stand in an expression.
    let rows = [
        (KEYS, "a + b != c", 1),
        (KEYS, "a.contains(b)", 0),
        (KEYS, r#"c.matches("a(b|c)*")"#, 1),
        (CAPACITIES, "c.lowerAscii() == a", 2),
        (CAPACITIES, "device.capacity[a] == device.capacity[b]", 2),
        (NAMES, "device.driver.startsWith(c)", 3),
        (NAMES, "device.attributes[b][c] == a", 1),
        (NAMES, "device.allowMultipleAllocations == true", 9),
        (NAMES, r#"device.attributes["x"].y.matches(a)"#, 0),
    ];
    for (around, term, most) in rows {
        let said =
            |count: usize| said(&around.replace("TERMS", &vec![term; count].join(" && ")), &Allowance::new());
        if most > 0 {
            assert_eq!(said(most), "", "{term}");
        }
        assert_eq!(
            said(most + 1),
            "FieldValueForbidden Forbidden: too complex, exceeds cost limit",
            "{term}"
        );
    }
}

#[test]
fn expressions_that_multiply_are_refused_once_an_object_has_too_many() {
    let multiplies = format!("optional.of(1){}.hasValue()", ".optMap(v, v)".repeat(6));
    assert_eq!(said(&multiplies, &Allowance::new()), "");
    let (allowance, plain) = (Allowance::new(), "device.driver == \"a\"");
    let refused = "FieldValueForbidden Forbidden: the expressions of the object are too many, compiled";
    let count = (0..10_000).take_while(|_| said(&multiplies, &allowance) != refused).count();
    assert!((10..10_000).contains(&count), "{count}");
    assert_eq!(said(plain, &allowance), refused);
    let (allowance, plain) = (Allowance::new(), "device.driver == \"a driver of a name of some length\"");
    assert!((0..10_000).all(|_| said(plain, &allowance).is_empty()));
}
