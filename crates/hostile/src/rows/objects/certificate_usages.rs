//! A certificate signing request with hundreds of thousands of usages, and a request that is none.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "objects-certificate-usages",
    who: Who::Admin,
    size: Sizes { full: 200_000, ten: 2_000 },
    act: Act::Request(request),
    law: Law::says(REFUSED),
    ..Row::BASE
};

fn request(size: usize) -> Request {
    let usages = joined(size, ",", |index| format!(r#""u{index}""#));
    let body = format!(
        r#"{{"apiVersion":"certificates.k8s.io/v1","kind":"CertificateSigningRequest","metadata":{{"name":"usages"}},"spec":{{"request":"{}","signerName":"a.dev/b","usages":[{usages}]}}}}"#,
        "MIIB".repeat(size / 10)
    );
    Request::post("/apis/certificates.k8s.io/v1/certificatesigningrequests", JSON, body)
}
