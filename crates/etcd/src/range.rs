//! Ranges: pages of keys below a prefix, and where they begin and end.

use forebay_apimachinery::{Key, Revision};
use forebay_backend::{Range, RangePage, ReadError, Versioned};

use crate::error::RequestError;
use crate::limits;
use crate::messages::{self, KeyValue, RangeRequest, RangeResponse, path};
use crate::pool::Use;
use crate::shared::Shared;
use crate::stretch::Stretch;

/// The first key of what is below `prefix`, or behind `after`.
pub(crate) fn key_of(prefix: &str, after: Option<&str>) -> String {
    match after {
        Some(after) => format!("{after}\0"),
        None => prefix.to_string(),
    }
}

/// The key that comes right behind `key`.
pub(crate) fn key_behind(key: &[u8]) -> Vec<u8> {
    [key, b"\0"].concat()
}

/// The key that ends what is below `prefix`, which ends with `/`: with `0`, the character behind it, instead.
pub(crate) fn end_of(prefix: &str) -> String {
    format!("{}0", prefix.strip_suffix('/').unwrap_or(prefix))
}

/// Where what `range` asks for begins, and where it ends.
pub(crate) fn bounds(range: &Range) -> (String, String) {
    let after = range.start_after.as_ref().map(Key::as_str);
    (key_of(range.prefix.as_str(), after), end_of(range.prefix.as_str()))
}

/// All that is within `bounds`, at the revision of `range`.
pub(crate) fn request<'a>((key, end): &'a (String, String), range: &Range) -> RangeRequest<'a> {
    RangeRequest {
        key: key.as_bytes(),
        end: end.as_bytes(),
        revision: range.at.map_or(0, Revision::get),
        ..RangeRequest::default()
    }
}

impl RangeResponse {
    /// The revision that it is of: the one that was asked for, or the current one.
    pub(crate) fn revision(&self, asked: Option<Revision>) -> Revision {
        asked.or(Revision::new(self.header.revision)).unwrap_or(Revision::FIRST)
    }

    /// Adds what follows.
    fn take(&mut self, next: RangeResponse) {
        let mut kvs = std::mem::take(&mut self.kvs);
        kvs.extend(next.kvs);
        *self = RangeResponse { kvs, ..next };
    }
}

impl Shared {
    /// Reads a page of keys without values.
    pub(crate) async fn keys(&self, range: Range) -> Result<RangePage, ReadError> {
        let bounds = bounds(&range);
        let mut from = bounds.0.clone().into_bytes();
        let limit = range.limit.clamp(1, limits::PAGE_KEYS_MAX) as u64;
        let response = loop {
            let request = RangeRequest { key: &from, limit, keys_only: true, ..request(&bounds, &range) };
            let response = match self.ask_page(&request).await {
                Ok(response) => response,
                Err(fault) => return Err(self.read_error(fault, range.at).await),
            };
            match beyond(&response) {
                Some(next) => from = next,
                None => break response,
            }
        };
        let (revision, RangeResponse { kvs, more, .. }) = (response.revision(range.at), response);
        let item = |kv: KeyValue| {
            let revision = Revision::new(kv.mod_revision)?;
            Some((self.key(&kv.key)?, Versioned { revision, value: kv.value }))
        };
        Ok(RangePage { revision, items: kvs.into_iter().filter_map(item).collect(), more })
    }

    /// Reads a page; fewer keys than asked for where values are large.
    pub(crate) async fn page(&self, range: Range) -> Result<RangePage, ReadError> {
        let response = self.response(&range, &Stretch::default()).await?;
        self.decoded(range.at, response).await
    }

    /// A page as etcd has it.
    pub(crate) async fn response(
        &self,
        range: &Range,
        stretch: &Stretch,
    ) -> Result<RangeResponse, ReadError> {
        match self.asked(range, stretch).await {
            Ok(response) => Ok(response),
            Err(fault) => Err(self.read_error(fault, range.at).await),
        }
    }

    /// The same, or why there was none. If there is more, it has a key of ours.
    pub(crate) async fn asked(
        &self,
        range: &Range,
        stretch: &Stretch,
    ) -> Result<RangeResponse, RequestError> {
        let bounds = bounds(range);
        let (mut from, end) = (bounds.0.clone().into_bytes(), bounds.1.as_bytes());
        let limit = range.limit.clamp(1, limits::PAGE_KEYS_MAX).min(self.page_keys()) as u64;
        let mut page = RangeResponse::default();
        loop {
            // What is current moves on: it is told by one answer.
            let near = if range.at.is_some() { stretch.near(&from, end) } else { end.to_vec() };
            let missing = limit - page.kvs.len() as u64;
            let request = RangeRequest { key: &from, end: &near, limit: missing, ..request(&bounds, range) };
            let found = self.ask_values(request).await?;
            let (next, ended_short) = (stretch.pass(&from, near, end, limit, &found), !found.more);
            page.take(found);
            let Some(next) = next else { return Ok(page) };
            page.more = true;
            if beyond(&page).is_some() {
                page.kvs.clear();
            } else if !ended_short || page.kvs.len() as u64 > limit / 2 {
                return Ok(page);
            }
            from = next;
        }
    }

    /// Counts the keys of `range`, whatever its limit. etcd reads no value for it.
    pub(crate) async fn count(&self, range: Range) -> Result<u64, ReadError> {
        let bounds = bounds(&range);
        let request = RangeRequest { count_only: true, ..request(&bounds, &range) };
        match self.ask_page(&request).await {
            Ok(response) => Ok(response.count),
            Err(fault) => Err(self.read_error(fault, range.at).await),
        }
    }

    /// Asks for a page with values: for its first half, where the answer would be too long.
    pub(crate) async fn ask_values(
        &self,
        mut request: RangeRequest<'_>,
    ) -> Result<RangeResponse, RequestError> {
        loop {
            match self.ask_page(&request).await {
                Err(RequestError::LongAnswer { .. }) if request.limit > 1 => request.limit /= 2,
                answer => return answer.inspect(|response| self.note_page(&response.kvs)),
            }
        }
    }

    pub(crate) async fn ask_page(&self, request: &RangeRequest<'_>) -> Result<RangeResponse, RequestError> {
        let closed = |_| RequestError::Unreachable { text: "the store is closed".to_string() };
        let _seat = self.pages.acquire().await.map_err(closed)?;
        let message = messages::range(request);
        let answer = self.ask(Use::Pages, path::RANGE, &message, limits::PAGE_WAIT).await?;
        Ok(messages::read_range(answer)?)
    }

    /// Values are decoded on several threads, and stay in order.
    pub(crate) async fn decoded(
        &self,
        at: Option<Revision>,
        response: RangeResponse,
    ) -> Result<RangePage, ReadError> {
        let (revision, RangeResponse { kvs, more, .. }) = (response.revision(at), response);
        let lacking = self.values().lacking(kvs.iter().map(|kv| (&kv.key[..], &kv.value)));
        lacking.known().await.map_err(|cause| ReadError::Unanswered { cause })?;
        let parts = kvs.chunks(PART_KEYS).map(|part| {
            let (part, shared) = (part.to_vec(), self.values());
            let decode = move |kv| shared.versioned(kv).transpose();
            forebay_rt::blocking(move || part.into_iter().filter_map(decode).collect::<Result<Vec<_>, _>>())
        });
        let parts: Vec<_> = parts.collect();
        let mut items: Vec<(Key, Versioned)> = Vec::with_capacity(kvs.len());
        for part in parts {
            let part = part.await.map_err(|error| ReadError::Failed { cause: error.to_string() })?;
            items.extend(part.map_err(|cause| ReadError::Unanswered { cause })?);
        }
        Ok(RangePage { revision, items, more })
    }

    /// A fault of a read at `asked`, with the revision that it is about.
    pub(crate) async fn read_error(&self, fault: RequestError, asked: Option<Revision>) -> ReadError {
        let bound = match fault {
            RequestError::Compacted => {
                self.forget_oldest();
                self.oldest().await.ok()
            }
            RequestError::Future => {
                self.quorum().await.ok().and_then(|header| Revision::new(header.revision))
            }
            _ => None,
        };
        fault.into_read(asked, bound.unwrap_or(Revision::FIRST))
    }
}

/// Values that one thread decodes at a time.
const PART_KEYS: usize = 256;

/// Whether its key is one of ours, which are text.
pub(crate) fn is_ours(kv: &KeyValue) -> bool {
    let ours = is_text(kv);
    if !ours {
        tracing::error!(key = ?kv.key, "a key in etcd is no text");
    }
    ours
}

fn is_text(kv: &KeyValue) -> bool {
    std::str::from_utf8(&kv.key).is_ok()
}

/// Where to go on behind a page that has no key of ours and is not the last one: whoever sees those alone
/// would ask for the same page for ever.
fn beyond(page: &RangeResponse) -> Option<Vec<u8>> {
    let last = page.kvs.last().filter(|_| page.more && !page.kvs.iter().any(is_text))?;
    tracing::error!(keys = page.kvs.len(), last = ?last.key, "keys in etcd are no text");
    Some(key_behind(&last.key))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_without_a_key_of_ours_is_passed_over_unless_it_is_the_last() {
        let beyond_page = |keys: &[&'static [u8]], more| {
            let kv = |key: &&'static [u8]| KeyValue { key: (*key).into(), ..KeyValue::default() };
            beyond(&RangeResponse { kvs: keys.iter().map(kv).collect(), more, ..RangeResponse::default() })
        };
        assert_eq!(beyond_page(&[b"/a/\xfe", b"/a/\xff"], true), Some(b"/a/\xff\0".to_vec()));
        assert_eq!(beyond_page(&[b"/a/\xfe", b"/a/\xff"], false), None);
        assert_eq!(beyond_page(&[b"/a/x", b"/a/\xff"], true), None, "there is one to go on from");
        assert_eq!(beyond_page(&[], false), None);
    }

    #[test]
    fn a_prefix_has_what_is_below_it_and_nothing_beside() {
        let (begin, end) = (key_of("/registry/pods/", None), end_of("/registry/pods/"));
        for below in ["/registry/pods/a", "/registry/pods/\u{10ffff}", "/registry/pods/a/b"] {
            assert!(begin.as_str() <= below && below < end.as_str(), "{below}");
        }
        for beside in ["/registry/pods", "/registry/pods0", "/registry/podsa/x", "/registry/pod/x"] {
            assert!(beside < begin.as_str() || end.as_str() <= beside, "{beside}");
        }
        assert_eq!(key_of("/a/", Some("/a/x")), "/a/x\0");
    }
}
