//! A stream of events, a line of JSON or a frame of protobuf each.

use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use serde_json::Value;
use tokio::time::timeout;

use super::WAIT;

/// An open watch.
pub struct Watch {
    body: Incoming,
    /// What came and was not a whole line yet, or was not asked for yet.
    buffer: Vec<u8>,
}

/// One line.
#[derive(Debug)]
pub struct Event {
    /// `ADDED`, `MODIFIED`, `DELETED`, `BOOKMARK`, `ERROR`
    pub kind: String,
    pub object: Value,
    /// As it came, without the newline.
    pub line: String,
}

impl Event {
    /// `ADDED name`
    pub fn short(&self) -> String {
        format!("{} {}", self.kind, super::text(&self.object, "/metadata/name"))
    }
}

impl Watch {
    pub fn new(body: Incoming) -> Watch {
        Watch { body, buffer: Vec::new() }
    }

    /// The next event, which must come.
    pub async fn event(&mut self) -> Event {
        self.next().await.expect("broken off").expect("an event, not the end")
    }

    /// The next events, which must come.
    pub async fn events(&mut self, count: usize) -> Vec<Event> {
        let mut events = Vec::with_capacity(count);
        while events.len() < count {
            events.push(self.event().await);
        }
        events
    }

    /// The stream must end in good order, with nothing before that.
    pub async fn end(&mut self) {
        let next = self.next().await.expect("broken off");
        assert!(next.is_none(), "an event, not the end: {next:?}");
    }

    /// The next frame, which must come, without its length.
    pub async fn frame(&mut self) -> Vec<u8> {
        loop {
            if let Some((len, rest)) = self.buffer.split_first_chunk()
                && let Some((frame, _)) = rest.split_at_checked(u32::from_be_bytes(*len) as usize)
            {
                let frame = frame.to_vec();
                self.buffer.drain(..4 + frame.len());
                return frame;
            }
            let more =
                timeout(WAIT, self.body.frame()).await.expect("nothing comes").expect("a frame, not the end");
            self.buffer.extend_from_slice(&more.expect("broken off").into_data().unwrap_or_default());
        }
    }

    /// The next event; `None` at the end.
    ///
    /// # Errors
    /// The stream broke off.
    pub async fn next(&mut self) -> Result<Option<Event>, String> {
        loop {
            if let Some(end) = self.buffer.iter().position(|byte| *byte == b'\n') {
                let rest = self.buffer.split_off(end + 1);
                let line = String::from_utf8(std::mem::replace(&mut self.buffer, rest)).expect("UTF-8");
                return Ok(Some(parse(line.trim_end_matches('\n'))));
            }
            let frame = timeout(WAIT, self.body.frame()).await.map_err(|_| "nothing comes".to_owned())?;
            match frame {
                Some(Ok(frame)) => self.buffer.extend_from_slice(&frame.into_data().unwrap_or_default()),
                Some(Err(why)) => return Err(why.to_string()),
                None if self.buffer.is_empty() => return Ok(None),
                None => return Err(format!("half a line: {}", String::from_utf8_lossy(&self.buffer))),
            }
        }
    }
}

fn parse(line: &str) -> Event {
    let value: Value = serde_json::from_str(line).unwrap_or_else(|why| panic!("{why}: {line}"));
    let Value::Object(mut members) = value else { panic!("no object: {line}") };
    let kind = members.remove("type").and_then(|kind| kind.as_str().map(str::to_owned));
    let object = members.remove("object").unwrap_or_else(|| panic!("no object: {line}"));
    assert!(members.is_empty(), "more than an event: {line}");
    Event { kind: kind.unwrap_or_else(|| panic!("no type: {line}")), object, line: line.to_owned() }
}
