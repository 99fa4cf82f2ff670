//! The options of the writing verbs.
//!
//! In: a query. Out: [`CreateOptions`], [`UpdateOptions`] and [`PatchOptions`], checked. Never: knows who
//! writes.
//!
//! Source: apimachinery v0.36.3 `apis/meta/v1/validation`.

use super::fault::{field_too_long, refuse};
use super::{Query, field_forbidden, field_invalid, field_not_supported, field_required};
use crate::accept::ContentType;
use crate::json::{go_quote, is_print, to_go_text};
use crate::{Cause, Status};

/// Longer names of field managers are refused.
pub const FIELD_MANAGER_BYTES_MAX: usize = 128;

/// What is done about fields that are unknown or duplicate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FieldValidation {
    Ignore,
    /// Nothing is said, and it warns.
    #[default]
    Unsaid,
    Warn,
    Strict,
}

impl FieldValidation {
    /// Empty when nothing is said.
    pub const fn as_str(self) -> &'static str {
        match self {
            FieldValidation::Ignore => "Ignore",
            FieldValidation::Unsaid => "",
            FieldValidation::Warn => "Warn",
            FieldValidation::Strict => "Strict",
        }
    }
}

/// What a CREATE asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CreateOptions {
    pub dry_run: bool,
    /// Empty when not sent: see [`manager_or_user_agent`].
    pub field_manager: String,
    pub field_validation: FieldValidation,
}

/// What an UPDATE asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UpdateOptions {
    pub dry_run: bool,
    /// Empty when not sent: see [`manager_or_user_agent`].
    pub field_manager: String,
    pub field_validation: FieldValidation,
}

/// What a PATCH asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PatchOptions {
    pub dry_run: bool,
    /// Empty when not sent, which apply does not permit: see [`manager_or_user_agent`].
    pub field_manager: String,
    pub field_validation: FieldValidation,
    /// Whether apply takes fields from other managers.
    pub force: bool,
}

impl CreateOptions {
    /// # Errors
    /// An invalid `CreateOptions`, with a cause for each fault.
    pub fn from_query(query: &Query) -> Result<CreateOptions, Status> {
        let (options, causes) = Common::read(query);
        refuse("CreateOptions", causes)?;
        let Common { dry_run, field_manager, field_validation } = options;
        Ok(CreateOptions { dry_run, field_manager, field_validation })
    }
}

impl UpdateOptions {
    /// # Errors
    /// An invalid `UpdateOptions`, with a cause for each fault.
    pub fn from_query(query: &Query) -> Result<UpdateOptions, Status> {
        let (options, causes) = Common::read(query);
        refuse("UpdateOptions", causes)?;
        let Common { dry_run, field_manager, field_validation } = options;
        Ok(UpdateOptions { dry_run, field_manager, field_validation })
    }
}

impl PatchOptions {
    /// - `patch`: what the body is; apply needs a field manager, and nothing else may be forced.
    ///
    /// # Errors
    /// An invalid `PatchOptions`, with a cause for each fault.
    pub fn from_query(query: &Query, patch: ContentType) -> Result<PatchOptions, Status> {
        let (options, faults) = Common::read(query);
        let force = query.boolean("force");
        let mut causes = Vec::new();
        if patch.is_apply() && options.field_manager.is_empty() {
            causes.push(field_required("fieldManager", "is required for apply patch"));
        }
        if !patch.is_apply() && force.is_some() {
            causes.push(field_forbidden("force", "may not be specified for non-apply patch"));
        }
        causes.extend(faults);
        refuse("PatchOptions", causes)?;
        let Common { dry_run, field_manager, field_validation } = options;
        Ok(PatchOptions { dry_run, field_manager, field_validation, force: force.unwrap_or(false) })
    }
}

/// The options that all three have.
struct Common {
    dry_run: bool,
    field_manager: String,
    field_validation: FieldValidation,
}

impl Common {
    fn read(query: &Query) -> (Common, Vec<Cause>) {
        let mut causes = Vec::new();
        let field_manager = query.text("fieldManager");
        causes.extend(field_manager_faults(&field_manager));
        let dry_run = query.texts("dryRun");
        causes.extend(dry_run_fault(&dry_run));
        let field_validation = match query.first("fieldValidation").unwrap_or_default() {
            "" => FieldValidation::Unsaid,
            "Warn" => FieldValidation::Warn,
            "Ignore" => FieldValidation::Ignore,
            "Strict" => FieldValidation::Strict,
            other => {
                let supported = ["", "Ignore", "Strict", "Warn"];
                causes.push(field_not_supported("fieldValidation", &go_quote(other), &supported));
                FieldValidation::default()
            }
        };
        (Common { dry_run: !dry_run.is_empty(), field_manager, field_validation }, causes)
    }
}

fn field_manager_faults(manager: &str) -> Vec<Cause> {
    let mut causes = Vec::new();
    // Upstream reports every character of a name that is too long: its square in bytes.
    let mut reported_max = FIELD_MANAGER_BYTES_MAX;
    if manager.len() > FIELD_MANAGER_BYTES_MAX {
        causes.push(field_too_long("fieldManager", FIELD_MANAGER_BYTES_MAX));
        reported_max = 1;
    }
    let unprintable = manager.char_indices().filter(|(_, c)| !is_print(*c)).take(reported_max);
    causes.extend(unprintable.map(|(at, c)| {
        let detail = format!("invalid character U+{:04X} (at position {at})", u32::from(c));
        field_invalid("fieldManager", &go_quote(manager), &detail)
    }));
    causes
}

/// Only `All` is a dry run.
pub(super) fn dry_run_fault(dry_run: &[String]) -> Option<Cause> {
    let is_supported = dry_run.iter().all(|value| value == "All");
    (!is_supported).then(|| field_not_supported("dryRun", &to_go_text(&dry_run.into()), &["All"]))
}

/// Who a write is booked on: the field manager, or what the user agent says before its first `/`.
pub fn manager_or_user_agent(manager: &str, user_agent: &str) -> String {
    if !manager.is_empty() {
        return manager.to_string();
    }
    let name = user_agent.split('/').next().unwrap_or_default();
    let mut manager = String::new();
    for c in name.chars().filter(|c| is_print(*c)) {
        if manager.len() + c.len_utf8() > FIELD_MANAGER_BYTES_MAX {
            break;
        }
        manager.push(c);
    }
    manager
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CauseReason, Reason};

    fn faults(status: Status) -> Vec<(String, String)> {
        assert_eq!((status.reason, status.group.as_str()), (Reason::Invalid, "meta.k8s.io"));
        status.causes.into_iter().map(|cause| (cause.field, cause.message)).collect()
    }

    fn check(text: &str, want: &[(&str, &str)]) {
        let got = match CreateOptions::from_query(&Query::parse(text)) {
            Ok(_) => Vec::new(),
            Err(status) => faults(status),
        };
        let got: Vec<_> = got.iter().map(|(field, message)| (field.as_str(), message.as_str())).collect();
        assert_eq!(got, want, "{text}");
    }

    #[test]
    fn options_are_read() {
        let query = Query::parse("dryRun=All&dryRun=All&fieldManager=me&fieldValidation=Strict&force=1");
        let (field_manager, field_validation) = ("me".to_string(), FieldValidation::Strict);
        assert_eq!(
            CreateOptions::from_query(&query),
            Ok(CreateOptions { dry_run: true, field_manager: field_manager.clone(), field_validation })
        );
        assert_eq!(
            UpdateOptions::from_query(&query),
            Ok(UpdateOptions { dry_run: true, field_manager: field_manager.clone(), field_validation })
        );
        assert_eq!(
            PatchOptions::from_query(&query, ContentType::ApplyYaml),
            Ok(PatchOptions { dry_run: true, field_manager, field_validation, force: true })
        );
        assert_eq!(CreateOptions::from_query(&Query::default()), Ok(CreateOptions::default()));
    }

    #[test]
    fn faults_are_told_in_upstreams_words() {
        check("dryRun=foo", &[("dryRun", r#"Unsupported value: ["foo"]: supported values: "All""#)]);
        check(
            "dryRun=All&dryRun=",
            &[("dryRun", r#"Unsupported value: ["All",""]: supported values: "All""#)],
        );
        check(
            "fieldManager=a%07b%E2%80%8B&fieldValidation=foo",
            &[
                ("fieldManager", r#"Invalid value: "a\ab\u200b": invalid character U+0007 (at position 1)"#),
                ("fieldManager", r#"Invalid value: "a\ab\u200b": invalid character U+200B (at position 3)"#),
                (
                    "fieldValidation",
                    r#"Unsupported value: "foo": supported values: "", "Ignore", "Strict", "Warn""#,
                ),
            ],
        );
        let long = format!("fieldManager={}", "a".repeat(FIELD_MANAGER_BYTES_MAX + 1));
        check(&long, &[("fieldManager", "Too long: may not be more than 128 bytes")]);
        check(&long[..long.len() - 1], &[]);
    }

    #[test]
    fn a_refusal_names_the_kind_of_options() {
        let query = Query::parse("dryRun=x");
        for (status, kind) in [
            (CreateOptions::from_query(&query).expect_err("refused"), "CreateOptions"),
            (UpdateOptions::from_query(&query).expect_err("refused"), "UpdateOptions"),
            (PatchOptions::from_query(&query, ContentType::JsonPatch).expect_err("refused"), "PatchOptions"),
        ] {
            assert_eq!(status.causes[0].reason, CauseReason::FieldValueNotSupported);
            assert_eq!(
                status.message,
                format!(
                    r#"{kind}.meta.k8s.io "" is invalid: dryRun: Unsupported value: ["x"]: supported values: "All""#
                )
            );
        }
    }

    #[test]
    fn only_apply_is_forced_and_needs_a_manager() {
        let patch = |text, patch| PatchOptions::from_query(&Query::parse(text), patch).map_err(faults);
        let one = |field: &str, message: &str| Err(vec![(field.to_string(), message.to_string())]);
        assert_eq!(
            patch("force=false", ContentType::MergePatch),
            one("force", "Forbidden: may not be specified for non-apply patch")
        );
        assert_eq!(
            patch("", ContentType::ApplyYaml),
            one("fieldManager", "Required value: is required for apply patch")
        );
        assert!(patch("", ContentType::MergePatch).is_ok());
        assert_eq!(patch("fieldManager=x", ContentType::ApplyCbor).map(|options| options.force), Ok(false));
    }

    #[test]
    fn the_user_agent_stands_in_for_the_manager() {
        let long = "é".repeat(100);
        for (manager, user_agent, want) in [
            ("me", "kubectl/v1.36", "me"),
            ("", "kubectl/v1.36 (linux/amd64)", "kubectl"),
            ("", "a\x07b\u{200b}c/1", "abc"),
            ("", "", ""),
            ("", &long, &long[..FIELD_MANAGER_BYTES_MAX]),
        ] {
            assert_eq!(manager_or_user_agent(manager, user_agent), want);
        }
    }
}
