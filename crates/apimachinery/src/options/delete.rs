//! The options of a DELETE.
//!
//! In: a query, or a body; a body wins, and then the query counts for nothing. Out: [`DeleteOptions`],
//! checked. Never: defaults a policy.
//!
//! Source: apimachinery v0.36.3 `apis/meta/v1`, apiserver v0.36.3 `endpoints/handlers/delete.go`.

use serde_json::Value;

use super::fault::refuse;
use super::write::dry_run_fault;
use super::{Query, field_invalid, field_not_supported};
use crate::Status;
use crate::json::{Members, to_go_text, write_sorted, write_string};
use crate::resource::not_registered;

/// What a DELETE asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeleteOptions {
    pub grace_period_seconds: Option<i64>,
    pub preconditions: Preconditions,
    /// The old form of `propagation_policy`; never both.
    pub orphan_dependents: Option<bool>,
    pub propagation_policy: Option<PropagationPolicy>,
    pub dry_run: bool,
    /// The object cannot be read and is to go all the same. A kube-apiserver ignores it until its feature is
    /// turned on.
    pub ignore_store_read_error_with_cluster_breaking_potential: Option<bool>,
}

/// What must hold of the object for the DELETE to happen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Preconditions {
    pub uid: Option<String>,
    pub resource_version: Option<String>,
}

/// What becomes of the objects that the deleted one owns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PropagationPolicy {
    Orphan,
    Background,
    Foreground,
}

impl PropagationPolicy {
    pub const fn as_str(self) -> &'static str {
        match self {
            PropagationPolicy::Orphan => "Orphan",
            PropagationPolicy::Background => "Background",
            PropagationPolicy::Foreground => "Foreground",
        }
    }
}

/// The option that deletes what cannot be read.
pub const IGNORE_READ_ERRORS: &str = "ignoreStoreReadErrorWithClusterBreakingPotential";

impl DeleteOptions {
    /// Whether what cannot be read is to be deleted.
    pub fn ignores_read_errors(&self) -> bool {
        self.ignore_store_read_error_with_cluster_breaking_potential == Some(true)
    }

    /// The options of a DELETE without a body.
    ///
    /// # Errors
    /// A bad request for a malformed number, an invalid `DeleteOptions` for a value that there is not.
    pub fn from_query(query: &Query) -> Result<DeleteOptions, Status> {
        let sent = |name| query.first(name).filter(|value| !value.is_empty()).map(str::to_string);
        let options = DeleteOptions {
            grace_period_seconds: query.integer("gracePeriodSeconds").map_err(Status::bad_request)?,
            preconditions: Preconditions { uid: sent("uid"), resource_version: sent("resourceVersion") },
            orphan_dependents: query.boolean("orphanDependents"),
            propagation_policy: None,
            dry_run: false,
            ignore_store_read_error_with_cluster_breaking_potential: query.boolean(IGNORE_READ_ERRORS),
        };
        options.checked(query.first("propagationPolicy"), &query.texts("dryRun"))
    }

    /// The options in a body: a `DeleteOptions` of any group, or an object without a kind.
    ///
    /// # Errors A bad request for a body of another kind or with members of wrong types, an invalid
    /// `DeleteOptions` for a value that there is not.
    pub fn from_body(body: &Value) -> Result<DeleteOptions, Status> {
        check_kind(body).map_err(Status::bad_request)?;
        let (options, policy, dry_run) = DeleteOptions::read(body).map_err(Status::bad_request)?;
        options.checked(policy, &dry_run)
    }

    /// The options in an Eviction of the pod `name`. Of what kind they say they are is nobody's business
    /// there.
    ///
    /// # Errors
    /// As [`DeleteOptions::from_body`]; an invalid Eviction for what a DELETE alone may ask for.
    pub fn of_eviction(given: &Value, name: &str) -> Result<DeleteOptions, Status> {
        let (options, policy, dry_run) = DeleteOptions::read(given).map_err(Status::bad_request)?;
        if options.ignores_read_errors() {
            let field = format!("deleteOptions.{IGNORE_READ_ERRORS}");
            let detail = "can not be set for pod eviction, try after removing the option";
            let cause = field_invalid(&field, "true", detail);
            return Err(Status::invalid("policy", "Eviction", name, vec![cause]));
        }
        options.checked(policy, &dry_run)
    }

    /// Options as an audit log of kube-apiserver has them: in the order of its type.
    pub fn noted(value: &Value) -> Vec<u8> {
        const MEMBERS: [&str; 6] = [
            "gracePeriodSeconds",
            "preconditions",
            "orphanDependents",
            "propagationPolicy",
            "dryRun",
            "ignoreStoreReadErrorWithClusterBreakingPotential",
        ];
        let mut out = br#"{"kind":"DeleteOptions","apiVersion":"meta.k8s.io/__internal""#.to_vec();
        let said = |name: &&str| !value[*name].is_null() && value[*name] != Value::Array(Vec::new());
        for name in MEMBERS.into_iter().filter(said) {
            out.push(b',');
            write_string(name, &mut out);
            out.push(b':');
            write_sorted(&value[name], &mut out);
        }
        out.push(b'}');
        out
    }

    fn read(body: &Value) -> Result<(DeleteOptions, Option<&str>, Vec<String>), String> {
        let members = Members::of(body, "v1.DeleteOptions", "DeleteOptions.")?;
        let preconditions = match members.object("preconditions", "Preconditions")? {
            None => Preconditions::default(),
            Some(preconditions) => Preconditions {
                uid: preconditions.text("uid", "types.UID")?.map(str::to_string),
                resource_version: preconditions.text("resourceVersion", "string")?.map(str::to_string),
            },
        };
        let options = DeleteOptions {
            grace_period_seconds: members.integer("gracePeriodSeconds")?,
            preconditions,
            orphan_dependents: members.boolean("orphanDependents")?,
            propagation_policy: None,
            dry_run: false,
            ignore_store_read_error_with_cluster_breaking_potential: members.boolean(IGNORE_READ_ERRORS)?,
        };
        let policy = members.text("propagationPolicy", "v1.DeletionPropagation")?;
        Ok((options, policy, members.texts("dryRun")?))
    }

    /// Adds the values of which there is a fixed set.
    fn checked(mut self, policy: Option<&str>, dry_run: &[String]) -> Result<DeleteOptions, Status> {
        let mut causes = Vec::new();
        if let Some(policy) = policy {
            let shown = to_go_text(&policy.into());
            if self.orphan_dependents.is_some() {
                let detail = "orphanDependents and deletionPropagation cannot be both set";
                causes.push(field_invalid("propagationPolicy", &shown, detail));
            }
            self.propagation_policy = match policy {
                "Orphan" => Some(PropagationPolicy::Orphan),
                "Background" => Some(PropagationPolicy::Background),
                "Foreground" => Some(PropagationPolicy::Foreground),
                _ => {
                    let supported = ["Foreground", "Background", "Orphan", "nil"];
                    causes.push(field_not_supported("propagationPolicy", &shown, &supported));
                    None
                }
            };
        }
        causes.extend(dry_run_fault(dry_run));
        if self.ignores_read_errors() {
            let beside = [
                (!dry_run.is_empty(), ".dryRun"),
                (policy.is_some(), ".propagationPolicy"),
                (self.orphan_dependents.is_some(), ".orphanDependents"),
                (self.grace_period_seconds.is_some(), ".gracePeriodSeconds"),
                (self.preconditions != Preconditions::default(), ".preconditions"),
            ];
            causes.extend(beside.into_iter().filter(|(is_set, _)| *is_set).map(|(_, other)| {
                field_invalid(IGNORE_READ_ERRORS, "true", &format!("cannot be set together with {other}"))
            }));
        }
        refuse("DeleteOptions", causes)?;
        self.dry_run = !dry_run.is_empty();
        Ok(self)
    }
}

fn check_kind(body: &Value) -> Result<(), String> {
    let go_type = "struct { APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \
                   \"json:\\\"kind,omitempty\\\"\" }";
    let kind = Members::of(body, go_type, ".")
        .and_then(|members| Ok((members.text("apiVersion", "string")?, members.text("kind", "string")?)));
    match kind.map_err(|message| format!("couldn't get version/kind; json parse error: {message}"))? {
        (_, None | Some("" | "DeleteOptions")) => Ok(()),
        (version, Some(kind)) => {
            Err(not_registered(kind, version.filter(|text| !text.is_empty()).unwrap_or("v1")))
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::Reason;

    fn query(text: &str) -> Result<DeleteOptions, Status> {
        DeleteOptions::from_query(&Query::parse(text))
    }

    #[test]
    fn options_are_noted_in_the_order_of_their_type() {
        let options = json!({ "propagationPolicy": "Background", "gracePeriodSeconds": 0, "dryRun": [] });
        let text = String::from_utf8(DeleteOptions::noted(&options)).expect("a text");
        let want = r#"{"kind":"DeleteOptions","apiVersion":"meta.k8s.io/__internal","gracePeriodSeconds":0,"propagationPolicy":"Background"}"#;
        assert_eq!(text, want);
    }

    #[test]
    fn a_query_is_read() {
        assert_eq!(query(""), Ok(DeleteOptions::default()));
        assert_eq!(query("uid=&resourceVersion="), Ok(DeleteOptions::default()));
        let got = query("gracePeriodSeconds=0&uid=a&resourceVersion=5&propagationPolicy=Orphan&dryRun=All");
        let want = DeleteOptions {
            grace_period_seconds: Some(0),
            preconditions: Preconditions { uid: Some("a".into()), resource_version: Some("5".into()) },
            propagation_policy: Some(PropagationPolicy::Orphan),
            dry_run: true,
            ..DeleteOptions::default()
        };
        assert_eq!(got, Ok(want));
    }

    #[test]
    fn a_body_is_read() {
        for body in [
            json!(null),
            json!({}),
            json!({"kind": "DeleteOptions", "apiVersion": "apps/v1", "unknown": 1}),
            json!({"gracePeriodSeconds": null, "preconditions": null, "dryRun": []}),
        ] {
            assert_eq!(DeleteOptions::from_body(&body), Ok(DeleteOptions::default()), "{body}");
        }
        let got = DeleteOptions::from_body(&json!({
            "gracePeriodSeconds": 30, "preconditions": {"uid": "a", "resourceVersion": "7"},
            "orphanDependents": false, "dryRun": ["All"],
        }));
        let want = DeleteOptions {
            grace_period_seconds: Some(30),
            preconditions: Preconditions { uid: Some("a".into()), resource_version: Some("7".into()) },
            orphan_dependents: Some(false),
            dry_run: true,
            ..DeleteOptions::default()
        };
        assert_eq!(got, Ok(want));
    }

    #[test]
    fn an_eviction_says_how_and_not_of_what_kind_that_is() {
        let of = |given: Value| DeleteOptions::of_eviction(&given, "p");
        let named = of(json!({"kind": "Pod", "apiVersion": "x/y", "gracePeriodSeconds": 3}));
        assert_eq!(named.map(|options| options.grace_period_seconds), Ok(Some(3)));
        let refused = of(json!({"ignoreStoreReadErrorWithClusterBreakingPotential": true}));
        assert_eq!(
            refused.expect_err("refused").message,
            "Eviction.policy \"p\" is invalid: deleteOptions.ignoreStoreReadErrorWithClusterBreakingPotential: Invalid \
             value: true: can not be set for pod eviction, try after removing the option"
        );
        assert!(of(json!({"ignoreStoreReadErrorWithClusterBreakingPotential": false})).is_ok());
        assert_eq!(of(json!({"gracePeriodSeconds": "x"})).expect_err("refused").reason, Reason::BadRequest);
    }

    #[test]
    fn a_body_of_wrong_types_is_a_bad_request() {
        let field = "json: cannot unmarshal";
        for (body, want) in [
            (
                json!({"gracePeriodSeconds": "5"}),
                format!("{field} string into Go struct field DeleteOptions.gracePeriodSeconds of type int64"),
            ),
            (
                json!({"gracePeriodSeconds": 5.5}),
                format!(
                    "{field} number 5.5 into Go struct field DeleteOptions.gracePeriodSeconds of type int64"
                ),
            ),
            (
                json!({"propagationPolicy": 5}),
                format!(
                    "{field} number into Go struct field DeleteOptions.propagationPolicy of type v1.DeletionPropagation"
                ),
            ),
            (
                json!({"preconditions": []}),
                format!(
                    "{field} array into Go struct field DeleteOptions.preconditions of type v1.Preconditions"
                ),
            ),
            (
                json!({"preconditions": {"uid": 5}}),
                format!(
                    "{field} number into Go struct field Preconditions.preconditions.uid of type types.UID"
                ),
            ),
            (
                json!({"dryRun": "All"}),
                format!("{field} string into Go struct field DeleteOptions.dryRun of type []string"),
            ),
            (
                json!({"kind": "Pod", "apiVersion": "v1"}),
                "no kind \"Pod\" is registered for version \"v1\" in scheme \"pkg/runtime/scheme.go:111\""
                    .to_string(),
            ),
            (
                json!({"kind": 5}),
                format!(
                    "couldn't get version/kind; json parse error: {field} number into Go struct field .kind of type string"
                ),
            ),
        ] {
            let status = DeleteOptions::from_body(&body).expect_err("refused");
            assert_eq!((status.reason, status.message), (Reason::BadRequest, want));
        }
        let array = DeleteOptions::from_body(&json!([])).expect_err("refused").message;
        assert!(
            array.starts_with(
                "couldn't get version/kind; json parse error: json: cannot unmarshal array into Go value of type struct { \
                 APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string"
            ),
            "{array}"
        );
    }

    #[test]
    fn faults_are_told_in_upstreams_words() {
        let supported = r#"supported values: "Foreground", "Background", "Orphan", "nil""#;
        for (text, want) in [
            ("gracePeriodSeconds=x", "strconv.ParseInt: parsing \"x\": invalid syntax".to_string()),
            (
                "propagationPolicy=",
                format!(
                    r#"DeleteOptions.meta.k8s.io "" is invalid: propagationPolicy: Unsupported value: "": {supported}"#
                ),
            ),
            (
                "propagationPolicy=Orphan&orphanDependents=false",
                r#"DeleteOptions.meta.k8s.io "" is invalid: propagationPolicy: Invalid value: "Orphan": orphanDependents and deletionPropagation cannot be both set"#
                    .to_string(),
            ),
        ] {
            assert_eq!(query(text).expect_err("refused").message, want);
        }
        let body = json!({"propagationPolicy": "x", "orphanDependents": true, "dryRun": ["x", "All"]});
        let causes = DeleteOptions::from_body(&body).expect_err("refused").causes;
        let fields: Vec<_> = causes.iter().map(|cause| cause.field.as_str()).collect();
        assert_eq!(fields, ["propagationPolicy", "propagationPolicy", "dryRun"]);
    }
}
