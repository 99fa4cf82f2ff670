//! What a server says instead of an answer, as the reflector judges it.
//!
//! In: an answer that is none, or a `Status` in a stream. Out: a [`Refusal`]; what it asks for of pauses is
//! told to the throttle. Never: reads more of a body than [`limits::REFUSAL_BYTES_MAX`], or for longer than
//! [`limits::REFUSAL_WAIT_MAX`].

use std::pin::pin;

use forebay_client::reflector::Refusal;
use forebay_client::wire::{Inflate, StatusFrame};
use http::Response;
use http::header::CONTENT_ENCODING;
use http_body::Body as _;
use kube::client::Body;

use crate::limits;
use crate::way::Way;

/// The whole of it.
pub(crate) async fn refusal(refused: Response<Body>, way: &Way) -> Refusal {
    let (head, body) = refused.into_parts();
    let mut text = Vec::new();
    let mut body = pin!(body);
    let read = async {
        while let Some(Ok(frame)) = std::future::poll_fn(|context| body.as_mut().poll_frame(context)).await {
            let Ok(piece) = frame.into_data() else { continue };
            let room = limits::REFUSAL_BYTES_MAX - text.len();
            text.extend_from_slice(&piece[..piece.len().min(room)]);
            if text.len() == limits::REFUSAL_BYTES_MAX {
                break;
            }
        }
    };
    let deadline = way.clock.now() + limits::REFUSAL_WAIT_MAX;
    tokio::select! { biased; () = read => {}, () = way.clock.sleep_until(deadline) => {} }
    if head.headers.get(CONTENT_ENCODING).is_some_and(|coding| coding == "gzip") {
        text = inflated(&text);
    }
    let status = StatusFrame::read(&text).unwrap_or_else(|_| StatusFrame {
        message: String::from_utf8_lossy(&text).chars().take(200).collect(),
        ..StatusFrame::default()
    });
    let code = head.status.as_u16();
    let said = Refusal { code, ..status.refusal(Some(&head.headers)) };
    // With a 429 it is a slot of this request's own, which the reflector keeps.
    if let (503, Some(retry_after)) = (code, said.retry_after) {
        way.throttle.until(retry_after);
    }
    said
}

fn inflated(text: &[u8]) -> Vec<u8> {
    let (mut inflate, mut out) = (Inflate::new(), Vec::new());
    inflate.push(text);
    while let Ok(Some(piece)) = inflate.next_piece() {
        out.extend_from_slice(piece);
        if out.len() >= limits::REFUSAL_BYTES_MAX {
            break;
        }
    }
    out
}
