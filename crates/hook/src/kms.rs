//! A KMS v2 plugin of tests: it answers over a Unix socket, as `v2.KeyManagementService` of gRPC.
//!
//! In: what a test says of its key, and of what goes wrong. Out: answers, and how often it was asked what.
//! What it encrypts is not secret: the key's name, and the text with each byte turned over. Never: code of
//! what is tested: it reads and writes protobuf by itself, and grpc-go speaks to it as well.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::grpc::{Answered, Listening, fields, put};

/// See the module's doc. Dropped, it is gone with its socket.
#[derive(Debug)]
pub struct KmsPlugin {
    state: Arc<Mutex<PluginState>>,
    listening: Listening,
}

#[derive(Debug)]
struct PluginState {
    key_id: String,
    /// What it does to these methods.
    mischief: Option<(KmsMischief, KmsMethods)>,
    healthz: String,
    /// It answers everything with this.
    failure: Option<(u32, String)>,
    /// What was encrypted under these is decrypted no more.
    forgotten: BTreeSet<String>,
    asked: AskedPlugin,
}

/// What it does where it should answer well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KmsMischief {
    /// Nothing, for ever.
    Hangs,
    /// It says one message of so many bytes, and sends them.
    Floods(u32),
    /// Its key is called otherwise in each answer.
    RenamesItsKey,
}

/// Which questions it does that to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KmsMethods {
    All,
    Decrypt,
}

/// How often it was asked what.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AskedPlugin {
    pub status: usize,
    pub encrypt: usize,
    pub decrypt: usize,
}

/// Where its key's name is told beside what it encrypts.
const ANNOTATION: &str = "plugin.example.com";

impl KmsPlugin {
    /// Listens at `socket` with the key `key_id`. To be called within a runtime.
    ///
    /// # Panics
    /// It cannot listen there.
    pub fn start(socket: &Path, key_id: &str) -> KmsPlugin {
        let state = Arc::new(Mutex::new(PluginState {
            key_id: key_id.to_owned(),
            mischief: None,
            healthz: "ok".to_owned(),
            failure: None,
            forgotten: BTreeSet::new(),
            asked: AskedPlugin::default(),
        }));
        let shared = state.clone();
        let listening = Listening::at(socket, move |path, message| {
            shared.lock().unwrap_or_else(PoisonError::into_inner).answered(path, message)
        });
        KmsPlugin { state, listening }
    }

    /// As a configuration names it.
    pub fn endpoint(&self) -> String {
        format!("unix://{}", self.listening.socket.display())
    }

    /// It encrypts with `key_id` from now on, and decrypts what was encrypted before.
    pub fn use_key(&self, key_id: &str) {
        key_id.clone_into(&mut self.state().key_id);
    }

    /// It says so of itself.
    pub fn be(&self, healthz: &str) {
        healthz.clone_into(&mut self.state().healthz);
    }

    /// It answers everything with this status; with none, as it should.
    pub fn fail(&self, failure: Option<(u32, &str)>) {
        self.state().failure = failure.map(|(code, text)| (code, text.to_owned()));
    }

    /// It does this to these questions from now on.
    pub fn misbehave(&self, mischief: KmsMischief, methods: KmsMethods) {
        self.state().mischief = Some((mischief, methods));
    }

    /// It does well again.
    pub fn behave(&self) {
        self.state().mischief = None;
    }

    /// It is gone, with its connections and its socket, as one that crashed and was cleaned up after.
    pub fn die(&self) {
        self.listening.die();
    }

    /// What was encrypted under `key_id` is decrypted no more.
    pub fn forget(&self, key_id: &str) {
        self.state().forgotten.insert(key_id.to_owned());
    }

    pub fn asked(&self) -> AskedPlugin {
        self.state().asked
    }

    fn state(&self) -> MutexGuard<'_, PluginState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PluginState {
    fn answered(&mut self, path: &str, message: &[u8]) -> Answered {
        let mischief = self.mischief_to(path);
        let answered = self.answer(path, message);
        match (mischief, answered) {
            (Some(KmsMischief::Hangs), _) => Answered::Never,
            (Some(KmsMischief::Floods(bytes)), _) => Answered::Flood(bytes),
            (_, Ok(message)) => Answered::Message(message),
            (_, Err((code, text))) => Answered::Failed(code, text),
        }
    }

    fn mischief_to(&mut self, path: &str) -> Option<KmsMischief> {
        let (mischief, methods) = self.mischief?;
        let is_meant = methods == KmsMethods::All || path.ends_with("/Decrypt");
        if is_meant && mischief == KmsMischief::RenamesItsKey {
            let asked = self.asked.status + self.asked.encrypt + self.asked.decrypt;
            self.key_id = format!("key-{asked}");
        }
        is_meant.then_some(mischief)
    }

    fn answer(&mut self, path: &str, message: &[u8]) -> Result<Vec<u8>, (u32, String)> {
        let fields = fields(message);
        let field = |number| fields.iter().rev().find(|(of, _)| *of == number).map_or(&[][..], |(_, it)| *it);
        let mut out = Vec::new();
        match path {
            "/v2.KeyManagementService/Status" => self.asked.status += 1,
            "/v2.KeyManagementService/Encrypt" => self.asked.encrypt += 1,
            "/v2.KeyManagementService/Decrypt" => self.asked.decrypt += 1,
            _ => return Err((12, format!("unknown method {path}"))),
        }
        if let Some(failure) = &self.failure {
            return Err(failure.clone());
        }
        match path {
            "/v2.KeyManagementService/Status" => {
                put(&mut out, 1, b"v2");
                put(&mut out, 2, self.healthz.as_bytes());
                put(&mut out, 3, self.key_id.as_bytes());
            }
            "/v2.KeyManagementService/Encrypt" => {
                let turned: Vec<u8> = field(1).iter().map(|byte| !byte).collect();
                let ciphertext = [self.key_id.as_bytes(), b":", &turned].concat();
                put(&mut out, 1, &ciphertext);
                put(&mut out, 2, self.key_id.as_bytes());
                let mut annotation = Vec::new();
                put(&mut annotation, 1, ANNOTATION.as_bytes());
                put(&mut annotation, 2, self.key_id.as_bytes());
                put(&mut out, 3, &annotation);
            }
            _ => {
                let key_id = String::from_utf8_lossy(field(3)).into_owned();
                if self.forgotten.contains(&key_id) {
                    return Err((5, format!("no key {key_id}")));
                }
                let annotation: Vec<(u64, Vec<u8>)> = inner(field(4));
                let is_told = annotation.iter().any(|(of, it)| *of == 2 && it == key_id.as_bytes());
                let head = format!("{key_id}:");
                let turned = field(1).strip_prefix(head.as_bytes()).filter(|_| is_told);
                let Some(turned) = turned else { return Err((3, "not encrypted here".to_owned())) };
                put(&mut out, 1, &turned.iter().map(|byte| !byte).collect::<Vec<u8>>());
            }
        }
        Ok(out)
    }
}

fn inner(message: &[u8]) -> Vec<(u64, Vec<u8>)> {
    fields(message).into_iter().map(|(number, bytes)| (number, bytes.to_vec())).collect()
}
