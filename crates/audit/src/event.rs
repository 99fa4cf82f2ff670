//! What is noted of a request at one stage, and its JSON as kube-apiserver writes it.
//!
//! In: what a request was, who asked, what was answered. Out: an `Event` of `audit.k8s.io/v1`. Never: decides
//! what belongs into it.
//!
//! Source: apiserver v0.36.3 `pkg/apis/audit/v1/types.go`.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;
use forebay_apimachinery::Caller;
use forebay_apimachinery::json::write_string;
use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::level::{AuditLevel, AuditStage};

/// How the JSON of an event begins; in a list of events it goes without its type.
pub(crate) const TYPE_HEAD: &[u8] = br#"{"kind":"Event","apiVersion":"audit.k8s.io/v1","#;

/// See the module's doc.
#[derive(Clone, Debug)]
pub struct AuditEvent {
    pub level: AuditLevel,
    pub id: String,
    pub stage: AuditStage,
    pub uri: String,
    pub verb: String,
    /// `None`: nobody is known.
    pub user: Option<Arc<Caller>>,
    pub impersonated: Option<Arc<Caller>>,
    /// By which constrained way somebody acts as somebody else, if it was one.
    pub impersonation_constraint: String,
    pub source_ips: Vec<IpAddr>,
    pub user_agent: String,
    pub object: Option<ObjectRef>,
    pub status: Option<ResponseStatus>,
    /// Compact JSON.
    pub request_object: Option<Bytes>,
    /// The same.
    pub response_object: Option<Bytes>,
    /// Microseconds since 1970.
    pub received_us: i64,
    pub stage_us: i64,
    // key -> value, bounded by whoever notes them
    pub annotations: BTreeMap<String, String>,
}

/// What a request is about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ObjectRef {
    pub resource: String,
    pub namespace: String,
    pub name: String,
    pub uid: String,
    pub group: String,
    pub version: String,
    pub resource_version: String,
    pub subresource: String,
}

/// What came of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResponseStatus {
    /// The members of a `Status` but for `metadata` and `code`, as JSON; empty where it was none.
    pub members: Vec<u8>,
    /// 0: none was sent yet.
    pub code: u16,
}

impl AuditEvent {
    /// Appends the event, with its type.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(TYPE_HEAD);
        text(out, b"\"level\":", self.level.name());
        text(out, b",\"auditID\":", &self.id);
        text(out, b",\"stage\":", self.stage.name());
        text(out, b",\"requestURI\":", &self.uri);
        text(out, b",\"verb\":", &self.verb);
        out.extend_from_slice(b",\"user\":");
        match &self.user {
            Some(user) => write_user(user, out),
            None => out.extend_from_slice(b"{}"),
        }
        if let Some(user) = &self.impersonated {
            out.extend_from_slice(b",\"impersonatedUser\":");
            write_user(user, out);
        }
        if !self.impersonation_constraint.is_empty() {
            text(
                out,
                b",\"authenticationMetadata\":{\"impersonationConstraint\":",
                &self.impersonation_constraint,
            );
            out.push(b'}');
        }
        if !self.source_ips.is_empty() {
            out.extend_from_slice(b",\"sourceIPs\":");
            list(out, self.source_ips.iter().map(IpAddr::to_string));
        }
        if !self.user_agent.is_empty() {
            text(out, b",\"userAgent\":", &self.user_agent);
        }
        if let Some(object) = &self.object {
            out.extend_from_slice(b",\"objectRef\":");
            object.write(out);
        }
        if let Some(status) = &self.status {
            out.extend_from_slice(b",\"responseStatus\":");
            status.write(out);
        }
        for (name, object) in [
            (b",\"requestObject\":".as_slice(), &self.request_object),
            (b",\"responseObject\":".as_slice(), &self.response_object),
        ] {
            if let Some(object) = object {
                out.extend_from_slice(name);
                out.extend_from_slice(object);
            }
        }
        text(out, b",\"requestReceivedTimestamp\":", &micro_time(self.received_us));
        text(out, b",\"stageTimestamp\":", &micro_time(self.stage_us));
        if !self.annotations.is_empty() {
            out.extend_from_slice(b",\"annotations\":");
            let mut members = Members::begin(out);
            self.annotations.iter().for_each(|(key, value)| members.text(key, value));
            members.end();
        }
        out.push(b'}');
    }

    /// How long its JSON is, about: what is small beside its objects is not counted byte by byte.
    pub(crate) fn size_hint(&self) -> usize {
        let objects = [&self.request_object, &self.response_object];
        1024 + self.uri.len() + objects.into_iter().flatten().map(Bytes::len).sum::<usize>()
    }
}

impl ObjectRef {
    fn write(&self, out: &mut Vec<u8>) {
        let mut members = Members::begin(out);
        for (name, value) in [
            ("resource", &self.resource),
            ("namespace", &self.namespace),
            ("name", &self.name),
            ("uid", &self.uid),
            ("apiGroup", &self.group),
            ("apiVersion", &self.version),
            ("resourceVersion", &self.resource_version),
            ("subresource", &self.subresource),
        ] {
            if !value.is_empty() {
                members.text(name, value);
            }
        }
        members.end();
    }
}

impl ResponseStatus {
    /// What a `Status` says, from its JSON as this server writes it.
    pub fn of_json(json: &[u8]) -> Option<ResponseStatus> {
        let rest = json.strip_prefix(br#"{"kind":"Status","apiVersion":"v1","metadata":{"#)?;
        // A token to go on with is not noted.
        let at = rest.iter().position(|byte| *byte == b'}')?;
        let rest = rest[at + 1..].strip_prefix(b",")?.trim_ascii_end();
        let rest = rest.strip_suffix(b"}")?;
        let digits = rest.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
        let (before, code) = rest.split_at(rest.len() - digits);
        let members = match before.strip_suffix(br#","code":"#) {
            Some(members) if !code.is_empty() => members,
            _ => rest,
        };
        Some(ResponseStatus { members: members.to_vec(), code: 0 })
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"metadata\":{}");
        if !self.members.is_empty() {
            out.push(b',');
            out.extend_from_slice(&self.members);
        }
        if self.code > 0 {
            out.extend_from_slice(format!(",\"code\":{}", self.code).as_bytes());
        }
        out.push(b'}');
    }
}

fn write_user(user: &Caller, out: &mut Vec<u8>) {
    let mut members = Members::begin(out);
    if !user.name.is_empty() {
        members.text("username", &user.name);
    }
    if !user.uid.is_empty() {
        members.text("uid", &user.uid);
    }
    if !user.groups.is_empty() {
        list(members.value("groups"), user.groups.iter());
    }
    if !user.extra.is_empty() {
        let mut extra = Members::begin(members.value("extra"));
        user.extra.iter().for_each(|(key, values)| list(extra.value(key), values.iter()));
        extra.end();
    }
    members.end();
}

fn text(out: &mut Vec<u8>, name: &[u8], value: &str) {
    out.extend_from_slice(name);
    write_string(value, out);
}

fn list(out: &mut Vec<u8>, values: impl Iterator<Item = impl AsRef<str>>) {
    out.push(b'[');
    for (at, value) in values.enumerate() {
        if at > 0 {
            out.push(b',');
        }
        write_string(value.as_ref(), out);
    }
    out.push(b']');
}

/// An object that is being written.
struct Members<'o> {
    out: &'o mut Vec<u8>,
    is_empty: bool,
}

impl<'o> Members<'o> {
    fn begin(out: &'o mut Vec<u8>) -> Members<'o> {
        out.push(b'{');
        Members { out, is_empty: true }
    }

    /// Where the value of `name` goes.
    fn value(&mut self, name: &str) -> &mut Vec<u8> {
        if !self.is_empty {
            self.out.push(b',');
        }
        self.is_empty = false;
        write_string(name, self.out);
        self.out.push(b':');
        self.out
    }

    fn text(&mut self, name: &str, value: &str) {
        write_string(value, self.value(name));
    }

    fn end(self) {
        self.out.push(b'}');
    }
}

/// As Kubernetes' MicroTime: always six digits, in UTC.
pub(crate) fn micro_time(us: i64) -> String {
    let at = Timestamp::from_microsecond(us).unwrap_or(Timestamp::UNIX_EPOCH);
    let at = at.to_zoned(TimeZone::UTC).datetime();
    let micros = at.subsec_nanosecond() / 1000;
    format!(
        "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{micros:06}Z",
        at.year(),
        at.month(),
        at.day(),
        at.hour(),
        at.minute(),
        at.second()
    )
}

/// One that tests change.
#[cfg(test)]
pub(crate) fn an_event() -> AuditEvent {
    let user = Caller { name: "ann".into(), groups: vec!["dev".into()], ..Caller::default() };
    AuditEvent {
        level: AuditLevel::Metadata,
        id: "id".into(),
        stage: AuditStage::ResponseComplete,
        uri: "/api/v1/pods?limit=1".into(),
        verb: "list".into(),
        user: Some(Arc::new(user)),
        impersonated: None,
        impersonation_constraint: String::new(),
        source_ips: vec![[127, 0, 0, 1].into()],
        user_agent: "test/1".into(),
        object: Some(ObjectRef { resource: "pods".into(), version: "v1".into(), ..ObjectRef::default() }),
        status: Some(ResponseStatus { members: Vec::new(), code: 200 }),
        request_object: None,
        response_object: None,
        received_us: 1_800_000_000_000_001,
        stage_us: 1_800_000_000_250_000,
        annotations: BTreeMap::new(),
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn check(event: &AuditEvent, want: &Expect) {
        let mut out = Vec::new();
        event.write(&mut out);
        let value: serde_json::Result<serde_json::Value> = serde_json::from_slice(&out);
        assert!(value.is_ok(), "JSON");
        want.assert_eq(&String::from_utf8_lossy(&out));
    }

    #[test]
    fn an_event_is_written_as_kube_apiserver_does() {
        check(
            &an_event(),
            &expect![[
                r#"{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"Metadata","auditID":"id","stage":"ResponseComplete","requestURI":"/api/v1/pods?limit=1","verb":"list","user":{"username":"ann","groups":["dev"]},"sourceIPs":["127.0.0.1"],"userAgent":"test/1","objectRef":{"resource":"pods","apiVersion":"v1"},"responseStatus":{"metadata":{},"code":200},"requestReceivedTimestamp":"2027-01-15T08:00:00.000001Z","stageTimestamp":"2027-01-15T08:00:00.250000Z"}"#
            ]],
        );
    }

    #[test]
    fn what_there_is_stands_in_kube_apiservers_order() {
        let extra = [("k".to_string(), vec!["<v>".to_string()])].into();
        let user = Caller { name: "bob".into(), uid: "u".into(), extra, ..Caller::default() };
        let status = br#"{"kind":"Status","apiVersion":"v1","metadata":{"continue":"x"},"status":"Failure","message":"m","code":404}"#;
        let event = AuditEvent {
            impersonated: Some(Arc::new(user)),
            impersonation_constraint: "impersonate:user-info".into(),
            status: ResponseStatus::of_json(status).map(|status| ResponseStatus { code: 404, ..status }),
            request_object: Some("{}".into()),
            response_object: Some("[1]".into()),
            annotations: [("b".into(), "2".into()), ("a".into(), "1".into())].into(),
            user: None,
            ..an_event()
        };
        check(
            &event,
            &expect![[
                r#"{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"Metadata","auditID":"id","stage":"ResponseComplete","requestURI":"/api/v1/pods?limit=1","verb":"list","user":{},"impersonatedUser":{"username":"bob","uid":"u","extra":{"k":["\u003cv\u003e"]}},"authenticationMetadata":{"impersonationConstraint":"impersonate:user-info"},"sourceIPs":["127.0.0.1"],"userAgent":"test/1","objectRef":{"resource":"pods","apiVersion":"v1"},"responseStatus":{"metadata":{},"status":"Failure","message":"m","code":404},"requestObject":{},"responseObject":[1],"requestReceivedTimestamp":"2027-01-15T08:00:00.000001Z","stageTimestamp":"2027-01-15T08:00:00.250000Z","annotations":{"a":"1","b":"2"}}"#
            ]],
        );
    }

    #[test]
    fn what_a_status_says_is_taken_from_its_json() {
        let members = |json: &str| {
            ResponseStatus::of_json(json.as_bytes()).map(|it| String::from_utf8(it.members).expect("a text"))
        };
        let head = r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success""#;
        assert_eq!(members(&format!("{head}}}\n")).as_deref(), Some(r#""status":"Success""#));
        let details = r#""status":"Success","details":{"name":"x","retryAfterSeconds":1}"#;
        let json = format!(r#"{{"kind":"Status","apiVersion":"v1","metadata":{{}},{details},"code":201}}"#);
        assert_eq!(members(&json).as_deref(), Some(details));
        assert_eq!(members(r#"{"kind":"Pod","apiVersion":"v1","metadata":{}}"#), None);
    }
}
