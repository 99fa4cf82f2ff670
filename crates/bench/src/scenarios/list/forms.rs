//! The forms of a LIST that clients ask for.
//!
//! In: a lab. Out: [`ListRequest`]s, and the bytes that one had. Never: a body kept; it is counted as it
//! comes.

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::header::{self, HeaderName};
use hyper::{Method, body::Incoming};

use super::JSON;
use crate::Error;
use crate::client::{Client, Protocol, RestConfig};
use crate::lab::Lab;
use crate::objects::Objects;
use crate::pods::{self, Workload};
use crate::stored::continue_token;

/// Objects in a page, as kubectl and informers ask.
const PAGE: usize = 500;

/// A way to ask.
#[derive(Clone, Debug)]
pub struct ListRequest {
    pub name: String,
    pub path: String,
    pub headers: Vec<(HeaderName, &'static str)>,
    pub protocol: Protocol,
}

/// Every form but the plain one.
pub fn forms(lab: &Lab) -> Vec<ListRequest> {
    let plain = ListRequest::plain(lab, lab.protocol);
    let of = |name: &str, path: String| ListRequest { name: name.into(), path, ..plain.clone() };
    let with = |name: &str, accept| ListRequest {
        name: name.into(),
        headers: vec![(header::ACCEPT, accept)],
        ..plain.clone()
    };
    let path = lab.objects.path();
    let mut all = vec![
        ListRequest::gzip(lab),
        ListRequest {
            headers: ListRequest::gzip(lab).headers,
            ..of("gzip LIST of a namespace", lab.objects.path_in(&pods::namespace(3)))
        },
        of("LIST of a namespace", lab.objects.path_in(&pods::namespace(3))),
        of("LIST by a label a fourth has", format!("{path}?labelSelector=tier%3Dbackend")),
        with("LIST as Table", "application/json;as=Table;g=meta.k8s.io;v=v1"),
        with("LIST as metadata", "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"),
        with("LIST as protobuf", "application/vnd.kubernetes.protobuf"),
        of("LIST in pages of 500", format!("{path}?limit={PAGE}")),
    ];
    if lab.objects == Objects::Pods {
        let app = Workload::new(0).app;
        all.push(of(
            "LIST by a label few have",
            format!("{path}?labelSelector=app.kubernetes.io%2Fname%3D{app}"),
        ));
        let node = pods::node(7);
        all.push(of("LIST by node", format!("{path}?fieldSelector=spec.nodeName%3D{node}")));
        let filter = format!("{path}?labelSelector=tier%3Dbackend");
        all.push(ListRequest {
            headers: ListRequest::gzip(lab).headers,
            ..of("gzip LIST by a label a fourth has", filter)
        });
    }
    all
}

impl ListRequest {
    pub fn plain(lab: &Lab, protocol: Protocol) -> ListRequest {
        let name = format!("identity LIST, {protocol:?}");
        ListRequest { name, path: lab.objects.path().into(), headers: JSON.to_vec(), protocol }
    }

    pub fn gzip(lab: &Lab) -> ListRequest {
        let mut headers = JSON.to_vec();
        headers.push((header::ACCEPT_ENCODING, "gzip"));
        ListRequest { name: "gzip LIST".into(), headers, ..ListRequest::plain(lab, lab.protocol) }
    }

    pub async fn connect(&self, target: &RestConfig) -> Result<Client, Error> {
        Client::connect(target, self.protocol).await
    }

    /// One LIST, all its pages; the bytes of the bodies.
    pub async fn list(&self, client: &mut Client) -> Result<u64, Error> {
        let (mut bytes, mut path) = (0, self.path.clone());
        loop {
            let response = client.start_with(Method::GET, &path, &self.headers, Bytes::new()).await?;
            if response.status() != 200 {
                return Err(Error::Answer { what: self.name.clone(), answer: response.status().to_string() });
            }
            let (own, head) = read(response.into_body()).await?;
            bytes += own;
            match continue_token(&head).filter(|_| self.path.contains("limit=")) {
                Some(token) => path = format!("{}&continue={token}", self.path),
                None => return Ok(bytes),
            }
        }
    }
}

/// Length of the body, and how it begins.
async fn read(mut body: Incoming) -> Result<(u64, Vec<u8>), Error> {
    let (mut bytes, mut head) = (0, Vec::new());
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|e| Error::Connection(e.to_string()))?;
        if let Some(data) = frame.data_ref() {
            bytes += data.len() as u64;
            let missing = 4_096_usize.saturating_sub(head.len());
            head.extend_from_slice(&data[..data.len().min(missing)]);
        }
    }
    Ok((bytes, head))
}
