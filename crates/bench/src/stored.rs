//! What a server holds, as it says itself: bytes of JSON, and how well neighbours of them compress together.
//!
//! In: a server with the objects of a lab. Out: [`Stored`]. It is read in pages, so that it costs the server
//! and us little. Never: what a server makes by itself.

use http_body_util::BodyExt;
use hyper::{Method, header};

use crate::Error;
use crate::client::{Client, RestConfig};
use crate::lab::Lab;
use crate::ratio::{block_ratio, items};

/// Of so many pages the ratio of one is taken.
const RATIO_OF: usize = 5;

#[derive(Clone, Copy, Debug)]
pub struct Stored {
    pub objects: usize,
    /// Of the items of a LIST.
    pub bytes: u64,
    pub block_ratio: f64,
}

/// Reads all of it.
pub async fn stored(lab: &Lab, target: &RestConfig) -> Result<Stored, Error> {
    let mut client = Client::connect(target, lab.protocol).await?;
    let mut all = Stored { objects: 0, bytes: 0, block_ratio: 1.0 };
    let mut ratios = Vec::new();
    let mut token = String::new();
    for page in 0.. {
        let limit = lab.objects.page();
        let path = format!("{}?labelSelector=tier&limit={limit}&continue={token}", lab.objects.path());
        let response = client
            .start_with(Method::GET, &path, &[(header::ACCEPT, "application/json")], bytes::Bytes::new())
            .await?;
        let body =
            response.into_body().collect().await.map_err(|e| Error::Connection(e.to_string()))?.to_bytes();
        let items = items(&body).ok_or_else(|| Error::Answer {
            what: path.clone(),
            answer: String::from_utf8_lossy(&body[..body.len().min(300)]).into_owned(),
        })?;
        all.objects += items.len();
        all.bytes += items.iter().map(|item| item.len() as u64).sum::<u64>();
        if page % RATIO_OF == 0 && !items.is_empty() {
            ratios.push(block_ratio(items.iter().copied()));
        }
        match continue_token(&body) {
            Some(more) => token = more,
            None => break,
        }
    }
    // Pages have about as many bytes each: what they deflate to adds up, so their ratios' harmonic mean is
    // that of all.
    all.block_ratio = ratios.len() as f64 / ratios.iter().map(|ratio| 1.0 / ratio).sum::<f64>();
    Ok(all)
}

/// The token in the beginning of a LIST, where it says that there is more.
pub fn continue_token(list: &[u8]) -> Option<String> {
    let head = String::from_utf8_lossy(&list[..list.len().min(4_096)]);
    let (before, _) = head.split_once("\"items\"").unwrap_or((&head, ""));
    let (_, rest) = before.split_once("\"continue\":\"")?;
    let (token, _) = rest.split_once('"')?;
    (!token.is_empty()).then(|| token.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_token_is_that_of_the_list_and_of_no_item() {
        let list = |head: &str| {
            format!(r#"{{"kind":"PodList","metadata":{{{head}}},"items":[{{"continue":"no"}}]}}"#)
        };
        assert_eq!(
            continue_token(list(r#""resourceVersion":"1","continue":"abc""#).as_bytes()).as_deref(),
            Some("abc")
        );
        assert_eq!(continue_token(list(r#""resourceVersion":"1""#).as_bytes()), None);
        assert_eq!(continue_token(list(r#""continue":"""#).as_bytes()), None);
    }
}
