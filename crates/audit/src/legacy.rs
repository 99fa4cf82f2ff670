//! An event as one line of text, of the format `legacy`.
//!
//! In: an event. Out: its line, without the newline. Never: objects, annotations.
//!
//! Source: apiserver v0.36.3 `pkg/audit/format.go`.

use forebay_apimachinery::json::go_quote;

use crate::event::{AuditEvent, micro_time};

pub(crate) fn line(event: &AuditEvent) -> String {
    let user = event.user.as_deref().filter(|user| !user.name.is_empty());
    let name = user.map_or("<none>", |user| &user.name);
    let groups = user.filter(|user| !user.groups.is_empty()).map(|user| quoted(&user.groups));
    let other = event.impersonated.as_deref();
    let other_groups = other.filter(|user| !user.groups.is_empty()).map(|user| quoted(&user.groups));
    let namespace = event.object.as_ref().map(|object| object.namespace.as_str());
    let response = event.status.as_ref().map(|status| status.code.to_string());
    let ip = event.source_ips.first().map(ToString::to_string);
    format!(
        "{} AUDIT: id={} stage={} ip={} method={} user={} groups={} as={} asgroups={} user-agent={} namespace={} \
         uri={} response=\"{}\"",
        rfc3339_nano(event.received_us),
        go_quote(&event.id),
        go_quote(event.stage.name()),
        go_quote(ip.as_deref().unwrap_or("<unknown>")),
        go_quote(&event.verb),
        go_quote(name),
        go_quote(groups.as_deref().unwrap_or("<none>")),
        go_quote(other.map_or("<self>", |user| &user.name)),
        go_quote(other_groups.as_deref().unwrap_or("<lookup>")),
        go_quote(&event.user_agent),
        go_quote(namespace.filter(|namespace| !namespace.is_empty()).unwrap_or("<none>")),
        go_quote(&event.uri),
        response.as_deref().unwrap_or("<deferred>"),
    )
}

fn quoted(all: &[String]) -> String {
    let all: Vec<String> = all.iter().map(|one| go_quote(one)).collect();
    all.join(",")
}

/// Without the zeros at the end of the fraction.
fn rfc3339_nano(us: i64) -> String {
    let text = micro_time(us);
    let text = text.trim_end_matches('Z').trim_end_matches('0').trim_end_matches('.');
    format!("{text}Z")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use forebay_apimachinery::Caller;

    use super::*;
    use crate::event::an_event;

    #[test]
    fn a_line_has_what_kube_apiserver_puts_there() {
        let event = an_event();
        let want = r#"2027-01-15T08:00:00.000001Z AUDIT: id="id" stage="ResponseComplete" ip="127.0.0.1" method="list" user="ann" groups="\"dev\"" as="<self>" asgroups="<lookup>" user-agent="test/1" namespace="<none>" uri="/api/v1/pods?limit=1" response="200""#;
        assert_eq!(line(&event), want);
        let other = Caller { name: "bob".into(), groups: vec!["a".into(), "b".into()], ..Caller::default() };
        let event = AuditEvent {
            user: None,
            impersonated: Some(Arc::new(other)),
            status: None,
            received_us: 1_800_000_000_000_000,
            ..an_event()
        };
        let want = r#"2027-01-15T08:00:00Z AUDIT: id="id" stage="ResponseComplete" ip="127.0.0.1" method="list" user="<none>" groups="<none>" as="bob" asgroups="\"a\",\"b\"" user-agent="test/1" namespace="<none>" uri="/api/v1/pods?limit=1" response="<deferred>""#;
        assert_eq!(line(&event), want);
    }
}
