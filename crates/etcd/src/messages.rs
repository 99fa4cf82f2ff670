//! etcd's messages, those fields of them that are used.
//!
//! In: requests as values. Out: their bytes; and answers, read. Values share the memory of the answer they
//! came in.
//! Source: etcd v3.7.3 `api/etcdserverpb/rpc.proto`, `api/mvccpb/kv.proto`: field numbers, which are the same since 3.4.

use bytes::Bytes;
use forebay_grpc::proto::{Fields, Malformed, Message};

/// The methods that are called.
pub mod path {
    pub const RANGE: &str = "/etcdserverpb.KV/Range";
    pub const RANGE_STREAM: &str = "/etcdserverpb.KV/RangeStream";
    pub const TXN: &str = "/etcdserverpb.KV/Txn";
    pub const PUT: &str = "/etcdserverpb.KV/Put";
    pub const DELETE_RANGE: &str = "/etcdserverpb.KV/DeleteRange";
    pub const COMPACT: &str = "/etcdserverpb.KV/Compact";
    pub const WATCH: &str = "/etcdserverpb.Watch/Watch";
    pub const LEASE_GRANT: &str = "/etcdserverpb.Lease/LeaseGrant";
    pub const LEASE_TIME_TO_LIVE: &str = "/etcdserverpb.Lease/LeaseTimeToLive";
    pub const STATUS: &str = "/etcdserverpb.Maintenance/Status";
}

/// What every answer begins with.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Header {
    pub cluster: u64,
    pub revision: u64,
}

/// A key with its value.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KeyValue {
    pub key: Bytes,
    pub value: Bytes,
    pub mod_revision: u64,
    /// How often the key was put since it was absent.
    pub version: u64,
    /// 0 for none.
    pub lease: u64,
}

impl KeyValue {
    /// Bytes that it takes in a page.
    pub fn cost(&self) -> usize {
        self.key.len() + self.value.len() + 32
    }
}

/// Which keys of which state.
#[derive(Debug, Clone, Copy, Default)]
pub struct RangeRequest<'a> {
    pub key: &'a [u8],
    /// Keys below this one; empty for `key` alone.
    pub end: &'a [u8],
    pub limit: u64,
    /// 0 for the current state.
    pub revision: u64,
    pub keys_only: bool,
    pub count_only: bool,
}

#[derive(Debug, Default)]
pub struct RangeResponse {
    pub header: Header,
    pub kvs: Vec<KeyValue>,
    pub more: bool,
    /// Keys of the whole range, whatever the limit.
    pub count: u64,
}

/// What a transaction holds a key against.
#[derive(Debug, Clone, Copy)]
pub enum Compare {
    ModRevision(u64),
    Version(u64),
}

/// What a transaction does.
#[derive(Debug, Clone, Copy)]
pub enum Action<'a> {
    /// `lease`: 0 for none.
    Put {
        value: &'a [u8],
        lease: u64,
    },
    Delete,
}

#[derive(Debug, Default)]
pub struct TxnResponse {
    pub header: Header,
    pub succeeded: bool,
    /// What the key holds, when the comparison failed.
    pub found: Option<KeyValue>,
}

/// One message of a watch.
#[derive(Debug, Default)]
pub struct WatchResponse {
    pub header: Header,
    pub created: bool,
    pub canceled: bool,
    /// Not 0: history up to here is gone.
    pub compact_revision: u64,
    pub cancel_reason: String,
    /// More of the same answer follows.
    pub fragment: bool,
    pub events: Vec<Event>,
}

/// A key at a revision; without a value when it was deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    pub key: Bytes,
    pub revision: u64,
    pub value: Option<Bytes>,
}

#[derive(Debug, Default)]
pub struct StatusResponse {
    pub header: Header,
    pub version: String,
    pub db_bytes: u64,
    pub db_bytes_in_use: u64,
    /// 0 when the member knows of none.
    pub leader: u64,
    /// It takes part in nothing yet, and answers no client but with how it is.
    pub is_learner: bool,
}

pub fn range(request: &RangeRequest<'_>) -> Vec<u8> {
    range_message(request).finish()
}

fn range_message(request: &RangeRequest<'_>) -> Message {
    Message::default()
        .bytes(1, request.key)
        .bytes(2, request.end)
        .number(3, request.limit)
        .number(4, request.revision)
        .flag(8, request.keys_only)
        .flag(9, request.count_only)
}

/// Does `action` if `key` is as `compare` says; reads it if not.
pub fn txn(key: &[u8], compare: Compare, action: Action<'_>) -> Vec<u8> {
    // Target VERSION is 0, MOD is 2; the result EQUAL is 0.
    let compare = match compare {
        Compare::Version(version) => Message::default().bytes(3, key).choice(4, version),
        Compare::ModRevision(revision) => Message::default().number(2, 2).bytes(3, key).choice(6, revision),
    };
    let success = match action {
        Action::Put { value, lease } => {
            Message::default().message(2, Message::default().bytes(1, key).bytes(2, value).number(3, lease))
        }
        Action::Delete => Message::default().message(3, Message::default().bytes(1, key)),
    };
    let read = RangeRequest { key, ..RangeRequest::default() };
    let failure = Message::default().message(1, range_message(&read));
    Message::default().message(1, compare).message(2, success).message(3, failure).finish()
}

pub fn compact(revision: u64) -> Vec<u8> {
    Message::default().number(1, revision).finish()
}

/// Puts without a lease, whatever is there.
pub fn put(key: &[u8], value: &[u8]) -> Vec<u8> {
    Message::default().bytes(1, key).bytes(2, value).finish()
}

/// Deletes `[key, end)`; with an empty `end`, `key`.
pub fn delete_range(key: &[u8], end: &[u8]) -> Vec<u8> {
    Message::default().bytes(1, key).bytes(2, end).finish()
}

pub fn lease_time_to_live(lease: u64) -> Vec<u8> {
    Message::default().number(1, lease).finish()
}

pub fn lease_grant(ttl_seconds: u64) -> Vec<u8> {
    Message::default().number(1, ttl_seconds).finish()
}

/// Watches `[key, end)` from `start_revision` on, in fragments, with progress, without previous values.
pub fn watch_create(key: &[u8], end: &[u8], start_revision: u64) -> Vec<u8> {
    let create =
        Message::default().bytes(1, key).bytes(2, end).number(3, start_revision).flag(4, true).flag(8, true);
    Message::default().message(1, create).finish()
}

pub fn watch_progress() -> Vec<u8> {
    Message::default().message(3, Message::default()).finish()
}

pub fn read_range(message: Bytes) -> Result<RangeResponse, Malformed> {
    let mut response = RangeResponse::default();
    let mut fields = Fields::of(message);
    while let Some((field, content)) = fields.next_field()? {
        match field {
            1 => response.header = header(content.bytes())?,
            2 => response.kvs.push(key_value(content.bytes())?),
            3 => response.more = content.is_true(),
            4 => response.count = content.number(),
            _ => {}
        }
    }
    Ok(response)
}

/// One message of a RangeStream: keys; in the last one also the header, and how many keys all of them had.
pub fn read_range_stream(message: Bytes) -> Result<RangeResponse, Malformed> {
    let mut fields = Fields::of(message);
    while let Some((field, content)) = fields.next_field()? {
        if field == 1 {
            return read_range(content.bytes());
        }
    }
    Ok(RangeResponse::default())
}

pub fn read_txn(message: Bytes) -> Result<TxnResponse, Malformed> {
    let mut response = TxnResponse::default();
    let mut fields = Fields::of(message);
    while let Some((field, content)) = fields.next_field()? {
        match field {
            1 => response.header = header(content.bytes())?,
            2 => response.succeeded = content.is_true(),
            3 => {
                let mut fields = Fields::of(content.bytes());
                while let Some((field, content)) = fields.next_field()? {
                    if field == 1 {
                        response.found = read_range(content.bytes())?.kvs.pop();
                    }
                }
            }
            _ => {}
        }
    }
    Ok(response)
}

/// The lease that was granted: its id, and for how many seconds.
pub fn read_lease_grant(message: Bytes) -> Result<(u64, u64), Malformed> {
    let (mut id, mut seconds) = (0, 0);
    let mut fields = Fields::of(message);
    while let Some((field, content)) = fields.next_field()? {
        match field {
            2 => id = content.number(),
            3 => seconds = content.number(),
            _ => {}
        }
    }
    Ok((id, seconds))
}

/// For how many seconds a lease still lasts; `None` when it is gone, which etcd says by -1.
pub fn read_lease_time_to_live(message: Bytes) -> Result<Option<u64>, Malformed> {
    let mut seconds = 0;
    let mut fields = Fields::of(message);
    while let Some((field, content)) = fields.next_field()? {
        if field == 3 {
            seconds = content.number();
        }
    }
    Ok(i64::try_from(seconds).ok().map(i64::unsigned_abs))
}

pub fn read_watch(message: Bytes) -> Result<WatchResponse, Malformed> {
    let mut response = WatchResponse::default();
    let mut fields = Fields::of(message);
    while let Some((field, content)) = fields.next_field()? {
        match field {
            1 => response.header = header(content.bytes())?,
            3 => response.created = content.is_true(),
            4 => response.canceled = content.is_true(),
            5 => response.compact_revision = content.number(),
            6 => response.cancel_reason = content.text(),
            7 => response.fragment = content.is_true(),
            11 => response.events.push(event(content.bytes())?),
            _ => {}
        }
    }
    Ok(response)
}

pub fn read_status(message: Bytes) -> Result<StatusResponse, Malformed> {
    let mut response = StatusResponse::default();
    let mut fields = Fields::of(message);
    while let Some((field, content)) = fields.next_field()? {
        match field {
            1 => response.header = header(content.bytes())?,
            2 => response.version = content.text(),
            3 => response.db_bytes = content.number(),
            4 => response.leader = content.number(),
            9 => response.db_bytes_in_use = content.number(),
            10 => response.is_learner = content.is_true(),
            _ => {}
        }
    }
    Ok(response)
}

/// The header alone, of any answer: it is field 1 of all of them.
pub fn read_header(message: Bytes) -> Result<Header, Malformed> {
    let mut fields = Fields::of(message);
    while let Some((field, content)) = fields.next_field()? {
        if field == 1 {
            return header(content.bytes());
        }
    }
    Ok(Header::default())
}

fn header(message: Bytes) -> Result<Header, Malformed> {
    let mut read = Header::default();
    let mut fields = Fields::of(message);
    while let Some((field, content)) = fields.next_field()? {
        match field {
            1 => read.cluster = content.number(),
            3 => read.revision = content.number(),
            _ => {}
        }
    }
    Ok(read)
}

fn key_value(message: Bytes) -> Result<KeyValue, Malformed> {
    let mut read = KeyValue::default();
    let mut fields = Fields::of(message);
    while let Some((field, content)) = fields.next_field()? {
        match field {
            1 => read.key = content.bytes(),
            3 => read.mod_revision = content.number(),
            4 => read.version = content.number(),
            5 => read.value = content.bytes(),
            6 => read.lease = content.number(),
            _ => {}
        }
    }
    Ok(read)
}

fn event(message: Bytes) -> Result<Event, Malformed> {
    let (mut deleted, mut read) = (false, KeyValue::default());
    let mut fields = Fields::of(message);
    while let Some((field, content)) = fields.next_field()? {
        match field {
            1 => deleted = content.is_true(),
            2 => read = key_value(content.bytes())?,
            _ => {}
        }
    }
    let KeyValue { key, value, mod_revision, .. } = read;
    Ok(Event { key, revision: mod_revision, value: (!deleted).then_some(value) })
}
