//! A watch over HTTP/1.1 as a client reads it that decides itself when to read, and how much.

use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, Interest};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::client::TlsStream;

use crate::common::{Client, WAIT, rv};

/// Room for next to nothing, so that a server notices at once who does not read.
pub const NO_ROOM: u32 = 4096;

pub struct Raw {
    pub stream: TlsStream<TcpStream>,
    // What came and is not decoded yet, and what is and is not a whole line yet.
    coded: Vec<u8>,
    plain: Vec<u8>,
    ended: bool,
}

impl Raw {
    /// Asks, and reads nothing.
    pub async fn ask(client: &Client, path: &str) -> Raw {
        let mut stream = client.raw(NO_ROOM).await;
        let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n");
        timeout(WAIT, stream.write_all(request.as_bytes())).await.expect("in time").expect("sent");
        Raw { stream, coded: Vec::new(), plain: Vec::new(), ended: false }
    }

    /// Asks for more on the same connection.
    pub async fn ask_again(&mut self, path: &str) {
        let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n");
        timeout(WAIT, self.stream.write_all(request.as_bytes())).await.expect("in time").expect("sent");
    }

    /// The head of the answer behind the one that was read to its end.
    pub async fn next_head(&mut self) -> String {
        assert!(std::mem::take(&mut self.ended), "it is not over");
        self.head().await
    }

    /// Asks, and reads the head of the answer.
    pub async fn watch(client: &Client, path: &str) -> Raw {
        let mut raw = Raw::ask(client, path).await;
        raw.head().await;
        raw
    }

    /// The head of the answer, which must be good.
    pub async fn head(&mut self) -> String {
        loop {
            if let Some(end) = self.coded.windows(4).position(|four| four == b"\r\n\r\n") {
                let head: Vec<u8> = self.coded.drain(..end + 4).collect();
                let head = String::from_utf8(head).expect("text");
                assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
                return head;
            }
            self.more().await.expect("a head");
        }
    }

    /// The next event; `None` at the end of the body.
    ///
    /// # Errors
    /// The connection was reset, or ended before the body did.
    pub async fn event(&mut self) -> Result<Option<Value>, String> {
        loop {
            if let Some(end) = self.plain.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.plain.drain(..=end).collect();
                return Ok(Some(serde_json::from_slice(&line).expect("JSON")));
            }
            if self.ended {
                assert!(self.plain.is_empty(), "half a line");
                return Ok(None);
            }
            if !self.decode() {
                self.more().await?;
            }
        }
    }

    /// The revisions of the objects of all events up to `last`, which must come.
    pub async fn revisions_up_to(&mut self, last: u64) -> Vec<u64> {
        let mut seen = Vec::new();
        while seen.last() != Some(&last) {
            let event = self.event().await.expect("broken off").expect("an event, not the end");
            assert_ne!(event["type"], "ERROR", "{event}");
            seen.push(rv(&event["object"]));
        }
        seen
    }

    /// Waits until the server resets the connection, without reading.
    pub async fn is_reset(&self, within: std::time::Duration) -> bool {
        timeout(within, self.stream.get_ref().0.ready(Interest::ERROR)).await.is_ok()
    }

    /// Decodes a whole chunk, if one is there.
    fn decode(&mut self) -> bool {
        let Some(line) = self.coded.windows(2).position(|two| two == b"\r\n") else { return false };
        let size = std::str::from_utf8(&self.coded[..line]).expect("a size");
        let size = usize::from_str_radix(size, 16).expect("a size");
        let (from, to) = (line + 2, line + 2 + size);
        if self.coded.len() < to + 2 {
            return false;
        }
        assert_eq!(&self.coded[to..to + 2], b"\r\n");
        self.plain.extend_from_slice(&self.coded[from..to]);
        self.coded.drain(..to + 2);
        self.ended = size == 0;
        true
    }

    async fn more(&mut self) -> Result<(), String> {
        let mut piece = vec![0; 64 << 10];
        let read = timeout(WAIT, self.stream.read(&mut piece)).await.map_err(|_| "nothing comes")?;
        match read {
            Ok(0) => Err("the connection ended".to_owned()),
            Ok(read) => {
                self.coded.extend_from_slice(&piece[..read]);
                Ok(())
            }
            Err(why) => Err(why.to_string()),
        }
    }
}
