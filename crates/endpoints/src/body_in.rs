//! A request's body: read within its limits, and brought into JSON.
//!
//! In: what the client sends, of the type it says. Out: JSON text, and the [`Lease`] on which it is worked
//! on. All bodies together, and what they become, are within their [`Rooms`], so that many large ones wait
//! and are not kept. Never: knows what a body means.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use forebay_api::Body;
use forebay_apimachinery::accept::{ContentType, unsupported_media_type};
use forebay_apimachinery::resource::{cannot_be_handled, not_registered, split_api_version};
use forebay_apimachinery::{Exhausted, Lease, Status, unrecognized};
use forebay_room::{Beyond, Held, Purse};
use forebay_schema::builtin::{protobuf, table};
use forebay_transport::RunOn;
use http::{HeaderMap, header};
use http_body::Body as HttpBody;
use http_body_util::BodyExt;
use serde_json::Value;

use crate::cost;
use crate::limits::{BODY_BYTES_MAX, BODY_SMALL_BYTES, BODY_STEP_BYTES, DRAINED_BYTES_MAX};
use crate::offload;
use crate::rooms::Rooms;
use crate::status::Failure;

/// A body that was read; gives its room back when dropped.
pub struct Received {
    pub bytes: Bytes,
    // Bodies are in one of two rooms: see [`Rooms`].
    held: Held,
    is_small: bool,
}

/// A body that may be worked on.
pub struct Leased {
    pub bytes: Bytes,
    pub lease: Lease,
    /// So many bytes, at least, are worked on: those of the body and of what it is to change.
    pub work: usize,
}

/// Reads a body whole, within `rooms`.
///
/// # Errors
/// 413 when it is too large, 429 when there is no room for it, 400 when it breaks off.
pub async fn read<B>(rooms: &Rooms, user: &str, headers: &HeaderMap, mut body: B) -> Result<Received, Failure>
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
    let is_small = announced.is_some_and(|len| len <= BODY_STEP_BYTES);
    let room = if is_small { &rooms.writes } else { &rooms.bodies };
    // One that is not there yet holds nothing: who announces much may send little.
    let mut held = room.charge(0);
    let mut first: Option<Bytes> = None;
    let mut all = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| Status::bad_request(format!("the body broke off: {error}")))?;
        let Ok(data) = frame.into_data() else { continue };
        let len = first.as_ref().map_or(all.len(), Bytes::len) + data.len();
        if len > BODY_BYTES_MAX {
            drop((first.take(), std::mem::take(&mut all), held));
            drain(body).await;
            return Err(Failure::entity_too_large(BODY_BYTES_MAX));
        }
        if len > held.bytes() {
            let step = len.next_multiple_of(BODY_STEP_BYTES).min(announced.unwrap_or(usize::MAX).max(len));
            let more = step - held.bytes();
            room.take_more(user, more, &mut held).await.map_err(|_full| rooms.full())?;
        }
        // Most bodies come in one piece, which is taken as it is.
        if all.is_empty() && first.is_none() {
            first = Some(data);
            continue;
        }
        if let Some(first) = first.take() {
            all.reserve(2 * len);
            all.extend_from_slice(&first);
        }
        all.extend_from_slice(&data);
    }
    Ok(Received { bytes: first.unwrap_or_else(|| all.freeze()), held, is_small })
}

impl Received {
    /// Asks for the room that working on it takes, as far as that can be told from outside. What it takes
    /// beyond that is taken on the way, or the request is over.
    ///
    /// - `beside`: bytes that are held besides: the tree of what is to be changed.
    ///
    /// # Errors
    /// 429 when there is none.
    pub async fn leased(
        mut self,
        rooms: &Rooms,
        user: &str,
        content_type: Option<ContentType>,
        beside: usize,
    ) -> Result<Leased, Failure> {
        let cost = cost::body(&self.bytes, content_type);
        if self.is_small && cost + beside > BODY_SMALL_BYTES {
            self.held = rooms.bodies.charge(self.bytes.len());
            self.is_small = false;
        }
        let room = if self.is_small { &rooms.writes } else { &rooms.bodies };
        room.take_more(user, cost + beside, &mut self.held).await.map_err(|_full| rooms.full())?;
        let beyond = Beyond { room: rooms.bodies.clone(), small_bytes: BODY_SMALL_BYTES };
        let beyond = self.is_small.then_some(beyond);
        let purse = Purse::new(room.clone(), self.held, beyond, rooms.away.clone());
        let work = self.bytes.len().max(beside);
        Ok(Leased { bytes: self.bytes, lease: Lease::new(purse, cost), work })
    }
}

/// What is wrong with a request that failed with `failure`: that it takes more than it may, if it does.
pub fn blamed(failure: Failure, lease: &Lease, rooms: &Rooms) -> Failure {
    match lease.exhausted() {
        None => failure,
        Some(Exhausted::NoRoom) => rooms.full(),
        Some(why @ Exhausted::TooLarge) => Status::from(why).into(),
    }
}

/// Reads what is left of a body that is too large, up to a limit: a client that is still sending would be
/// reset before it has read the answer.
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

/// The header, empty when there is none. One that is no text names no type, rather than none.
pub fn content_type(headers: &HeaderMap) -> &str {
    headers.get(header::CONTENT_TYPE).map_or("", |value| value.to_str().unwrap_or("not a text"))
}

/// The body of an object of `kind`.
///
/// # Errors
/// 400 in kube-apiserver's words; see [`offload::done`].
pub async fn object(leased: &Leased, content_type: ContentType, kind: Arc<str>) -> Result<Body, Failure> {
    let run_on = match content_type {
        // It stays as it is.
        ContentType::Json => RunOn::Task,
        ContentType::Yaml => offload::run_on(forebay_yaml::work(&leased.bytes)),
        _ => offload::run_on(leased.bytes.len()),
    };
    // It has its room until this is over, whoever still waits for it.
    let (bytes, lease) = (leased.bytes.clone(), leased.lease.clone());
    offload::done(run_on, move || converted(bytes, content_type, &kind, &lease)).await?
}

fn converted(bytes: Bytes, content_type: ContentType, kind: &str, lease: &Lease) -> Result<Body, Failure> {
    match content_type {
        ContentType::Protobuf => Ok(Body::Value(message(&bytes, kind, lease)?)),
        ContentType::Yaml => {
            let read = forebay_yaml::to_json(&bytes, lease);
            Ok(of_yaml(read.map_err(|error| unrecognized(kind, &error, &bytes))?))
        }
        _ => Ok(Body::Json(bytes)),
    }
}

fn of_yaml(read: forebay_yaml::Json) -> Body {
    Body::Yaml { json: read.text.into(), repeated: read.repeated }
}

/// What is applied, which may be what could not be read.
///
/// # Errors
/// See [`offload::done`].
pub async fn configuration(leased: &Leased) -> Result<Body, Failure> {
    let run_on = offload::run_on(forebay_yaml::work(&leased.bytes));
    // As of an object.
    let (bytes, lease) = (leased.bytes.clone(), leased.lease.clone());
    let converted = move || forebay_yaml::to_json(&bytes, &lease).map(of_yaml);
    let json = offload::done(run_on, converted).await?;
    Ok(json.unwrap_or_else(|why| {
        let why = format!("error decoding YAML: error converting YAML to JSON: {why}");
        Body::Unreadable(Status::bad_request(why).into())
    }))
}

/// An object in its protobuf envelope, where one of kind `wanted` belongs.
fn message(bytes: &[u8], wanted: &str, lease: &Lease) -> Result<Value, Failure> {
    let unknown = protobuf::decode_envelope(bytes).map_err(|error| unrecognized(wanted, &error, bytes))?;
    let (kind, api_version) = (&*unknown.kind, &*unknown.api_version);
    let decoded = || {
        let (group, version) = split_api_version(api_version);
        let known = table().kind(group, version, kind).ok_or_else(|| not_registered(kind, api_version))?;
        protobuf::decode(known.ty, unknown.raw, lease).map_err(|error| error.to_string())
    };
    let mut value =
        decoded().map_err(|why| Status::bad_request(cannot_be_handled(kind, api_version, wanted, why)))?;
    value["apiVersion"] = Value::from(api_version);
    value["kind"] = Value::from(kind);
    Ok(value)
}

#[cfg(test)]
mod tests {
    use forebay_apimachinery::Reason;
    use forebay_rt::Clock;
    use http_body_util::Full;

    use super::*;
    use crate::limits::BODIES_ROOM_BYTES;

    fn rooms() -> Rooms {
        Rooms::new(Clock::system())
    }

    async fn read_one(rooms: &Rooms, len: usize, announced: Option<usize>) -> Result<Received, Failure> {
        let mut headers = HeaderMap::new();
        if let Some(announced) = announced {
            headers.insert(header::CONTENT_LENGTH, announced.into());
        }
        read(rooms, "user", &headers, Full::new(Bytes::from(vec![b'x'; len]))).await
    }

    #[tokio::test]
    async fn a_body_is_read_up_to_the_limit() {
        let rooms = rooms();
        let max = BODY_BYTES_MAX;
        for (len, announced, want) in [
            (0, None, true),
            (max, None, true),
            (max, Some(max), true),
            (max + 1, None, false),
            (5, Some(max + 1), false),
        ] {
            let got = read_one(&rooms, len, announced).await;
            assert_eq!(
                got.as_ref().map(|body| body.bytes.len()).ok(),
                want.then_some(len),
                "{len} {announced:?}"
            );
            if let Err(failure) = got {
                assert_eq!(failure, Failure::entity_too_large(max));
            }
        }
        assert!(rooms.totals().iter().all(|(_, totals)| totals.held == 0));
    }

    #[tokio::test]
    async fn a_body_in_pieces_is_put_together() {
        let mut pieces = ["ab", "", "cd", "e"].map(Bytes::from).into_iter();
        let body = Pieces(std::iter::from_fn(move || pieces.next()));
        let got = read(&rooms(), "user", &HeaderMap::new(), body).await;
        assert_eq!(got.ok().map(|body| body.bytes), Some(Bytes::from("abcde")));
    }

    #[tokio::test(start_paused = true)]
    async fn bodies_beyond_the_room_wait_and_are_refused_and_small_ones_go_on() {
        let rooms = rooms();
        let mut kept = Vec::new();
        for _ in 0..BODIES_ROOM_BYTES / BODY_BYTES_MAX {
            kept.push(read_one(&rooms, BODY_BYTES_MAX, None).await.expect("there is room"));
        }
        let refused = read_one(&rooms, BODY_BYTES_MAX, None).await.err().expect("no room");
        assert_eq!(refused.status.reason, Reason::TooManyRequests);
        assert!(refused.status.retry_after_seconds > 0);
        let small = read_one(&rooms, 1000, Some(1000)).await.expect("another room");
        assert!(small.leased(&rooms, "user", Some(ContentType::Json), 0).await.is_ok());
        kept.pop();
        assert!(read_one(&rooms, BODY_BYTES_MAX, None).await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn what_a_body_becomes_takes_room_too() {
        let rooms = rooms();
        let text = Bytes::from(format!("[{}0]", "{},".repeat(20_000)));
        let read_bomb = async || {
            let mut headers = HeaderMap::new();
            headers.insert(header::CONTENT_LENGTH, text.len().into());
            read(&rooms, "user", &headers, Full::new(text.clone())).await.expect("small")
        };
        let mut bombs = Vec::new();
        let refused = loop {
            match read_bomb().await.leased(&rooms, "user", Some(ContentType::Json), 0).await {
                Ok(bomb) => bombs.push(bomb),
                Err(refused) => break refused,
            }
        };
        assert_eq!(refused.status.reason, Reason::TooManyRequests);
        assert!((5..12).contains(&bombs.len()), "{}", bombs.len());
        assert!(rooms.writes.totals().held < 64 << 10, "they hold no room of the small ones");
        drop(bombs);
        assert!(rooms.totals().iter().all(|(_, totals)| totals.held == 0));
    }

    #[tokio::test(start_paused = true)]
    async fn a_short_body_that_becomes_much_leaves_the_room_of_small_writes() {
        let rooms = rooms();
        let small = read_one(&rooms, 1000, Some(1000)).await.expect("small");
        let leased = small.leased(&rooms, "user", Some(ContentType::Json), 0).await.expect("room");
        assert!(rooms.writes.totals().held > 0 && rooms.bodies.totals().held == 0);
        leased.lease.charge(10 << 20).expect("there is room for large ones");
        assert_eq!(rooms.writes.totals().held, 0);
        assert!(rooms.bodies.totals().held >= 10 << 20);
        drop(leased);
        assert!(rooms.totals().iter().all(|(_, totals)| totals.held == 0));
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
        let value = http::HeaderValue::from_bytes(b"application/json\xff").expect("a value");
        let odd = HeaderMap::from_iter([(header::CONTENT_TYPE, value)]);
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
            assert!(object_type(&odd, Forms::Text).is_err(), "no text is not nothing");
            let text = want.filter(|content_type| *content_type != ContentType::Protobuf);
            assert_eq!(object_type(&headers, Forms::Text).ok(), text, "{value:?}");
        }
    }
}
