//! Documents and answers that are at hand as JSON, in protobuf, held against kube-apiserver's.
//!
//! In: JSON of ours. Out: bodies that kube-apiserver sent. Never: anything of a server that runs.

use forebay_apimachinery::Status;
use forebay_reads::{As, EventForm, PROTOBUF};

use crate::status::Failure;
use crate::watch_body::testing::served;
use forebay_schema::builtin::protobuf::{self, from_json};

fn check(json: &str, want: &[u8]) {
    let got = from_json(json.as_bytes()).map_err(|error| error.to_string());
    assert_eq!(
        got.as_deref().map(<[u8]>::escape_ascii).map(|text| text.to_string()),
        Ok(want.escape_ascii().to_string()),
        "{json}"
    );
}

// Bodies that kube-apiserver 1.36.3 sent.
#[test]
fn documents_are_written_as_kube_apiserver_writes_them() {
    check(
        r#"{"kind":"APIVersions","versions":["v1"],"serverAddressByClientCIDRs":[{"clientCIDR":"0.0.0.0/0","serverAddress":"192.0.2.2:36443"}]}"#,
        b"k8s\x00\n\x0f\n\x00\x12\x0bAPIVersions\x12\"\n\x02v1\x12\x1c\n\t0.0.0.0/0\x12\x0f192.0.2.2:36443\x1a\x00\"\x00",
    );
    check(
        r#"{"kind":"APIGroup","apiVersion":"v1","name":"apps","versions":[{"groupVersion":"apps/v1","version":"v1"}],"preferredVersion":{"groupVersion":"apps/v1","version":"v1"}}"#,
        b"k8s\x00\n\x0e\n\x02v1\x12\x08APIGroup\x12$\n\x04apps\x12\r\n\x07apps/v1\x12\x02v1\x1a\r\n\x07apps/v1\x12\x02v1\x1a\x00\"\x00",
    );
    check(
        r#"{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1beta1","metadata":{"resourceVersion":"327"},"items":[]}"#,
        b"k8s\x00\n0\n\x13meta.k8s.io/v1beta1\x12\x19PartialObjectMetadataList\x12\x0b\x12\t\n\x00\x12\x03327\x1a\x00\x1a\x00\"\x00",
    );
}

#[test]
fn a_status_is_written_as_kube_apiserver_writes_it() {
    for (failure, want) in [
        (
            Failure::unauthorized(),
            &b"k8s\x00\n\x0c\n\x02v1\x12\x06Status\x120\n\x06\n\x00\x12\x00\x1a\x00\x12\x07Failure\x1a\x0cUnauthorized\"\x0cUnauthorized0\x91\x03\x1a\x00\"\x00"[..],
        ),
        (
            Status::not_found("", "configmaps", "none").into(),
            b"k8s\x00\n\x0c\n\x02v1\x12\x06Status\x12U\n\x06\n\x00\x12\x00\x1a\x00\x12\x07Failure\x1a\x1bconfigmaps \"none\" not found\"\x08NotFound*\x18\n\x04none\x12\x00\x1a\nconfigmaps(\x002\x000\x94\x03\x1a\x00\"\x00",
        ),
        (
            Failure::not_acceptable(&["application/json"]),
            b"k8s\x00\n\x0c\n\x02v1\x12\x06Status\x12q\n\x06\n\x00\x12\x00\x1a\x00\x12\x07Failure\x1a@406: Not Acceptable\n\nAvailable representations: application/json\"\rNotAcceptable*\n\n\x00\x12\x00\x1a\x00(\x002\x000\x96\x03\x1a\x00\"\x00",
        ),
    ] {
        check(&String::from_utf8_lossy(&failure.to_json()), want);
    }
}

#[tokio::test]
async fn an_error_is_a_frame() {
    let mut out = Vec::new();
    let mut events = (PROTOBUF.writer)(
        served("configmaps").await,
        EventForm { format: &PROTOBUF, ..EventForm::from(As::Object) },
    );
    events.error(&Failure::unauthorized().to_json(), &mut out);
    let (len, event) = out.split_first_chunk().expect("a length");
    assert_eq!(u32::from_be_bytes(*len) as usize, event.len());
    let event = protobuf::decode_watch_event(event).expect("an event");
    let status = from_json(&Failure::unauthorized().to_json()).expect("a body");
    assert_eq!((&*event.kind, event.object), ("ERROR", &status[..]));
}

#[test]
fn what_has_no_message_is_an_error() {
    for json in [
        "{",
        "{}",
        r#"{"kind":"Table","apiVersion":"meta.k8s.io/v1"}"#,
        r#"{"kind":"Widget","apiVersion":"example.com/v1"}"#,
        r#"{"kind":"Status","apiVersion":"v1","code":"x"}"#,
    ] {
        assert!(from_json(json.as_bytes()).is_err(), "{json}");
    }
}
