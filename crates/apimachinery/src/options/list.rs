//! The options of the reading verbs.
//!
//! In: a query. Out: [`ListOptions`], [`GetOptions`] and [`TableOptions`] with every value read. Never:
//! judges which options go together.

use super::{Query, field_invalid};
use crate::json::go_quote;
use crate::selector::{FieldSelector, LabelSelector};
use crate::{Reason, Status};

/// What a LIST, a WATCH or the delete of a collection asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListOptions {
    pub label_selector: LabelSelector,
    /// Its paths are not checked: which ones there are is the resource's matter.
    pub field_selector: FieldSelector,
    pub watch: bool,
    pub allow_watch_bookmarks: bool,
    /// As sent; empty when not.
    pub resource_version: String,
    /// As sent; empty when not.
    pub resource_version_match: String,
    pub timeout_seconds: Option<i64>,
    /// 0 when not sent; may be negative.
    pub limit: i64,
    /// The continue token, not decoded; empty when not sent.
    pub continue_token: String,
    pub send_initial_events: Option<bool>,
}

impl ListOptions {
    /// # Errors
    /// A bad request, for a number or a selector that is none.
    pub fn from_query(query: &Query) -> Result<ListOptions, Status> {
        ListOptions::read(query).map_err(|message| Status::new(Reason::BadRequest, message))
    }

    /// Reads in upstream's order, which decides on which of several faults is told.
    fn read(query: &Query) -> Result<ListOptions, String> {
        let timeout_seconds = query.integer("timeoutSeconds")?;
        let limit = query.integer("limit")?.unwrap_or(0);
        Ok(ListOptions {
            label_selector: LabelSelector::parse(query.first("labelSelector").unwrap_or_default())?,
            field_selector: FieldSelector::parse(query.first("fieldSelector").unwrap_or_default())?,
            watch: query.boolean("watch").unwrap_or(false),
            allow_watch_bookmarks: query.boolean("allowWatchBookmarks").unwrap_or(false),
            resource_version: query.text("resourceVersion"),
            resource_version_match: query.text("resourceVersionMatch"),
            timeout_seconds,
            limit,
            continue_token: query.text("continue"),
            send_initial_events: query.boolean("sendInitialEvents"),
        })
    }
}

/// What a GET asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GetOptions {
    /// As sent; empty when not.
    pub resource_version: String,
}

impl GetOptions {
    pub fn from_query(query: &Query) -> GetOptions {
        GetOptions { resource_version: query.text("resourceVersion") }
    }
}

/// How a reply as Table is wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TableOptions {
    pub include_object: IncludeObject,
}

/// What a row of a Table carries of its object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IncludeObject {
    None,
    #[default]
    Metadata,
    Object,
}

impl TableOptions {
    /// # Errors
    /// A bad request, for a policy that there is not.
    pub fn from_query(query: &Query) -> Result<TableOptions, Status> {
        let include_object = match query.first("includeObject").unwrap_or_default() {
            "" | "Metadata" => IncludeObject::Metadata,
            "None" => IncludeObject::None,
            "Object" => IncludeObject::Object,
            other => {
                let rule = "must be 'Metadata', 'Object', 'None', or empty";
                let fault = field_invalid("includeObject", &go_quote(other), rule);
                return Err(Status::bad_request(format!(
                    "Unable to convert to Table as requested: {}: {}",
                    fault.field, fault.message
                )));
            }
        };
        Ok(TableOptions { include_object })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<ListOptions, Status> {
        ListOptions::from_query(&Query::parse(text))
    }

    #[test]
    fn nothing_asked_is_the_default() {
        assert_eq!(read(""), Ok(ListOptions::default()));
        assert_eq!(read("shardSelector=x&unknown=y&timeout=z"), Ok(ListOptions::default()));
    }

    #[test]
    fn every_option_is_read() {
        let got = read(
            "labelSelector=app%3Dweb&fieldSelector=spec.nodeName%3Da&watch=true&allowWatchBookmarks=1&resourceVersion=7\
             &resourceVersionMatch=NotOlderThan&timeoutSeconds=30&limit=500&continue=abc&sendInitialEvents=false",
        );
        let want = ListOptions {
            label_selector: LabelSelector::parse("app=web").expect("a selector"),
            field_selector: FieldSelector::equals("spec.nodeName", "a"),
            watch: true,
            allow_watch_bookmarks: true,
            resource_version: "7".into(),
            resource_version_match: "NotOlderThan".into(),
            timeout_seconds: Some(30),
            limit: 500,
            continue_token: "abc".into(),
            send_initial_events: Some(false),
        };
        assert_eq!(got, Ok(want));
    }

    #[test]
    fn a_malformed_value_is_a_bad_request() {
        for (text, want) in [
            ("limit=abc", "strconv.ParseInt: parsing \"abc\": invalid syntax"),
            ("limit=a&timeoutSeconds=b", "strconv.ParseInt: parsing \"b\": invalid syntax"),
            ("labelSelector=a%3Db%3Dc&fieldSelector=x", "found '=', expected: ',' or 'end of string'"),
            ("fieldSelector=a", "invalid selector: 'a'; can't understand 'a'"),
        ] {
            let status = read(text).expect_err(text);
            assert_eq!((status.reason, status.message.as_str()), (Reason::BadRequest, want));
        }
    }

    #[test]
    fn a_table_policy_is_one_of_three() {
        let read = |text| TableOptions::from_query(&Query::parse(text)).map(|options| options.include_object);
        assert_eq!(read(""), Ok(IncludeObject::Metadata));
        assert_eq!(read("includeObject=None"), Ok(IncludeObject::None));
        assert_eq!(read("includeObject=Object"), Ok(IncludeObject::Object));
        assert_eq!(
            read("includeObject=x").expect_err("no policy").message,
            "Unable to convert to Table as requested: includeObject: Invalid value: \"x\": must be 'Metadata', 'Object', \
             'None', or empty"
        );
    }
}
