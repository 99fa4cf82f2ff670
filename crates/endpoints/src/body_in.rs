//! A request's body: read within its limits, and brought into JSON.
//!
//! In: what the client sends, of the type it says. Out: JSON text. All bodies together are within a budget, so that many
//! large ones at once are refused and not kept. Never: knows what a body means.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use forebay_apimachinery::accept::{ContentType, unsupported_media_type};
use forebay_apimachinery::resource::{cannot_be_handled, not_registered, split_api_version};
use forebay_apimachinery::{Reason, Status};
use forebay_registry::request::{self, Body};
use forebay_schema::builtin::{protobuf, table};
use http::{HeaderMap, header};
use http_body::Body as HttpBody;
use http_body_util::BodyExt;
use serde_json::Value;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::limits::{BODIES_BYTES_MAX, BODY_BYTES_MAX, DRAINED_BYTES_MAX};
use crate::status::Failure;
use crate::yaml;

const KIB: usize = 1 << 10;

/// Room for the bodies of all requests. Cheap to clone.
#[derive(Clone)]
pub struct Budget(Arc<Semaphore>);

/// A body that was read; gives its room back when dropped.
pub struct Received {
    pub bytes: Bytes,
    _room: OwnedSemaphorePermit,
}

impl Budget {
    pub fn new() -> Budget {
        Budget(Arc::new(Semaphore::new(BODIES_BYTES_MAX / KIB)))
    }

    /// Reads a body whole.
    ///
    /// # Errors
    /// 413 when it is too large, 429 when there is no room for it now, 400 when it breaks off.
    pub async fn read<B>(&self, headers: &HeaderMap, mut body: B) -> Result<Received, Failure>
    where
        B: HttpBody<Data = Bytes> + Unpin,
        B::Error: std::fmt::Display,
    {
        let announced =
            headers.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<usize>().ok());
        if announced.is_some_and(|len| len > BODY_BYTES_MAX) {
            drain(body).await;
            return Err(Failure::entity_too_large(BODY_BYTES_MAX));
        }
        let room = announced.unwrap_or(BODY_BYTES_MAX).div_ceil(KIB) as u32;
        let Ok(room) = self.0.clone().try_acquire_many_owned(room) else {
            let message = "too many request bodies are being read, please try again later";
            return Err(Status::new(Reason::TooManyRequests, message).retry_after(1).into());
        };
        let mut first: Option<Bytes> = None;
        let mut all = BytesMut::new();
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|error| Status::bad_request(format!("the body broke off: {error}")))?;
            let Ok(data) = frame.into_data() else { continue };
            let len = first.as_ref().map_or(all.len(), Bytes::len) + data.len();
            if len > BODY_BYTES_MAX {
                drop((first.take(), std::mem::take(&mut all)));
                drain(body).await;
                return Err(Failure::entity_too_large(BODY_BYTES_MAX));
            }
            // Most bodies come in one piece, which is taken as it is.
            if all.is_empty() && first.is_none() {
                first = Some(data);
                continue;
            }
            if let Some(first) = first.take() {
                all.reserve(announced.unwrap_or(2 * len));
                all.extend_from_slice(&first);
            }
            all.extend_from_slice(&data);
        }
        Ok(Received { bytes: first.unwrap_or_else(|| all.freeze()), _room: room })
    }
}

/// Reads what is left of a body that is too large, up to a limit: a client that is still sending would be reset before
/// it has read the answer.
async fn drain<B>(mut body: B)
where
    B: HttpBody<Data = Bytes> + Unpin,
{
    let mut left = DRAINED_BYTES_MAX;
    while let Some(Ok(frame)) = body.frame().await {
        let len = frame.data_ref().map_or(0, Bytes::len);
        if len >= left {
            return;
        }
        left -= len;
    }
}

/// Types of a body that is an object or options. Custom resources have no protobuf.
const OBJECT_TYPES: [ContentType; 3] = [ContentType::Json, ContentType::Yaml, ContentType::Protobuf];

/// Whether what is written has a protobuf form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forms {
    Text,
    TextAndProtobuf,
}

/// What the header says the body is; nothing said is JSON.
///
/// # Errors
/// 415 for what is not served.
pub fn object_type(headers: &HeaderMap, forms: Forms) -> Result<ContentType, Failure> {
    let types = match forms {
        Forms::Text => &OBJECT_TYPES[..2],
        Forms::TextAndProtobuf => &OBJECT_TYPES[..],
    };
    let content_type = match content_type(headers) {
        "" => Some(ContentType::Json),
        header => ContentType::parse(header),
    };
    let taken = content_type.filter(|content_type| types.contains(content_type));
    taken.ok_or_else(|| unsupported_media_type(types).into())
}

pub fn content_type(headers: &HeaderMap) -> &str {
    headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or("")
}

/// The body of an object of `kind`.
///
/// # Errors
/// 400 in kube-apiserver's words.
pub fn object(received: &Received, content_type: ContentType, kind: &str) -> Result<Body, Failure> {
    match content_type {
        ContentType::Protobuf => Ok(Body::Value(message(&received.bytes, kind)?)),
        ContentType::Yaml => {
            let json = yaml::to_json(&received.bytes)
                .map_err(|error| request::unrecognized(kind, &error, &received.bytes))?;
            Ok(Body::Json(json.into()))
        }
        _ => Ok(Body::Json(received.bytes.clone())),
    }
}

/// An object in its protobuf envelope, where one of kind `wanted` belongs.
fn message(bytes: &[u8], wanted: &str) -> Result<Value, Failure> {
    let unknown =
        protobuf::decode_envelope(bytes).map_err(|error| request::unrecognized(wanted, &error, bytes))?;
    let (kind, api_version) = (&*unknown.kind, &*unknown.api_version);
    let decoded = || {
        let (group, version) = split_api_version(api_version);
        let known = table().kind(group, version, kind).ok_or_else(|| not_registered(kind, api_version))?;
        protobuf::decode(known.ty, unknown.raw).map_err(|error| error.to_string())
    };
    let mut value =
        decoded().map_err(|why| Status::bad_request(cannot_be_handled(kind, api_version, wanted, why)))?;
    value["apiVersion"] = Value::from(api_version);
    value["kind"] = Value::from(kind);
    Ok(value)
}

#[cfg(test)]
mod tests {
    use http_body_util::Full;

    use super::*;

    async fn read(budget: &Budget, len: usize, announced: Option<usize>) -> Result<Received, Failure> {
        let mut headers = HeaderMap::new();
        if let Some(announced) = announced {
            headers.insert(header::CONTENT_LENGTH, announced.into());
        }
        budget.read(&headers, Full::new(Bytes::from(vec![b'x'; len]))).await
    }

    #[tokio::test]
    async fn a_body_is_read_up_to_the_limit() {
        let budget = Budget::new();
        let max = BODY_BYTES_MAX;
        for (len, announced, want) in [
            (0, None, true),
            (max, None, true),
            (max, Some(max), true),
            (max + 1, None, false),
            (5, Some(max + 1), false),
        ] {
            let got = read(&budget, len, announced).await;
            assert_eq!(
                got.as_ref().map(|body| body.bytes.len()).ok(),
                want.then_some(len),
                "{len} {announced:?}"
            );
            if let Err(failure) = got {
                assert_eq!(failure, Failure::entity_too_large(max));
            }
        }
    }

    #[tokio::test]
    async fn a_body_in_pieces_is_put_together() {
        let mut pieces = ["ab", "", "cd", "e"].map(Bytes::from).into_iter();
        let body = Pieces(std::iter::from_fn(move || pieces.next()));
        let got = Budget::new().read(&HeaderMap::new(), body).await;
        assert_eq!(got.ok().map(|body| body.bytes), Some(Bytes::from("abcde")));
    }

    #[tokio::test]
    async fn bodies_beyond_the_budget_are_refused_until_there_is_room() {
        let budget = Budget::new();
        let mut kept = Vec::new();
        for _ in 0..BODIES_BYTES_MAX / BODY_BYTES_MAX {
            kept.push(read(&budget, 1, None).await.expect("there is room"));
        }
        let refused = read(&budget, 1, None).await.err().expect("no room");
        assert_eq!((refused.status.reason, refused.status.retry_after_seconds), (Reason::TooManyRequests, 1));
        kept.pop();
        assert!(read(&budget, 1, None).await.is_ok());
    }

    struct Pieces<I>(I);

    impl<I: Iterator<Item = Bytes> + Unpin> HttpBody for Pieces<I> {
        type Data = Bytes;
        type Error = std::convert::Infallible;

        fn poll_frame(
            mut self: std::pin::Pin<&mut Self>,
            _: &mut std::task::Context<'_>,
        ) -> std::task::Poll<Option<Result<http_body::Frame<Bytes>, Self::Error>>> {
            std::task::Poll::Ready(self.0.next().map(|piece| Ok(http_body::Frame::data(piece))))
        }
    }

    #[test]
    fn bodies_say_what_they_are() {
        for (value, want) in [
            (None, Some(ContentType::Json)),
            (Some(""), Some(ContentType::Json)),
            (Some("application/json; charset=utf-8"), Some(ContentType::Json)),
            (Some("application/yaml"), Some(ContentType::Yaml)),
            (Some("application/vnd.kubernetes.protobuf"), Some(ContentType::Protobuf)),
            (Some("text/plain"), None),
        ] {
            let mut headers = HeaderMap::new();
            if let Some(value) = value {
                headers.insert(header::CONTENT_TYPE, value.parse().expect("a value"));
            }
            assert_eq!(object_type(&headers, Forms::TextAndProtobuf).ok(), want, "{value:?}");
            let text = want.filter(|content_type| *content_type != ContentType::Protobuf);
            assert_eq!(object_type(&headers, Forms::Text).ok(), text, "{value:?}");
        }
    }
}
