//! An external signer of tests: it answers over a Unix socket, as `v1.ExternalJWTSigner` of gRPC.
//!
//! In: what a test says of its keys, and of what goes wrong. Out: answers, and how often it was asked what.
//! Its keys are on P-256, each made when it is first named. Never: code of what is tested.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
use serde_json::json;

use crate::grpc::{Answered, Listening, fields, put, put_number};

/// What stands before a point of P-256 where a key is told in DER.
const P256: [u8; 26] = [
    0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a, 0x86,
    0x48, 0xce, 0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
];

/// See the module's doc. Dropped, it is gone with its socket.
#[derive(Debug)]
pub struct SignerPlugin {
    state: Arc<Mutex<SignerState>>,
    listening: Listening,
}

#[derive(Debug)]
struct SignerState {
    pairs: BTreeMap<String, EcdsaKeyPair>,
    says: SignerSays,
    asked: AskedSigner,
}

/// What it says.
#[derive(Clone, Debug)]
pub struct SignerSays {
    pub keys: Vec<SaidKey>,
    pub refresh_seconds: i64,
    /// When its keys were read: seconds since 1970, and nanoseconds.
    pub at: Option<(i64, i64)>,
    /// By which key.
    pub signs_with: String,
    /// The JSON of a header, instead of the one that is due.
    pub header: Option<String>,
    /// A signature, instead of a good one.
    pub signature: Option<String>,
    pub max_seconds: i64,
    /// By the last part of a method's path: what it does where it should answer well.
    pub mischief: BTreeMap<&'static str, SignerMischief>,
}

/// A key that it tells.
#[derive(Clone, Debug)]
pub struct SaidKey {
    pub id: String,
    pub der: Vec<u8>,
    pub is_excluded: bool,
}

/// What it does where it should answer well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignerMischief {
    /// A status and its text.
    Fails(u32, &'static str),
    Hangs,
    /// It says one message of so many bytes, and sends them.
    Floods(u32),
}

/// How often it was asked what.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AskedSigner {
    pub sign: usize,
    pub fetch_keys: usize,
    pub metadata: usize,
}

impl SignerPlugin {
    /// Listens at `socket`, and signs with the key `key_id`, the only one that it tells. To be called within
    /// a runtime.
    ///
    /// # Panics
    /// It cannot listen there.
    pub fn start(socket: &Path, key_id: &str) -> SignerPlugin {
        let mut state = SignerState {
            pairs: BTreeMap::new(),
            says: SignerSays {
                keys: Vec::new(),
                refresh_seconds: 3600,
                at: Some((1_700_000_000, 500_000_000)),
                signs_with: key_id.to_owned(),
                header: None,
                signature: None,
                max_seconds: 86_400,
                mischief: BTreeMap::new(),
            },
            asked: AskedSigner::default(),
        };
        let key = state.said(key_id, false);
        state.says.keys.push(key);
        let state = Arc::new(Mutex::new(state));
        let shared = state.clone();
        let listening = Listening::at(socket, move |path, message| {
            shared.lock().unwrap_or_else(PoisonError::into_inner).answered(path, message)
        });
        SignerPlugin { state, listening }
    }

    /// The same once it has been gone: it has its keys again, and says what it said.
    ///
    /// # Panics
    /// It cannot listen there.
    pub fn restart(&mut self) {
        let shared = self.state.clone();
        self.listening.die();
        let socket = self.listening.socket.clone();
        let listening = Listening::at(&socket, move |path, message| {
            shared.lock().unwrap_or_else(PoisonError::into_inner).answered(path, message)
        });
        // The one before takes its socket along when it goes.
        std::mem::replace(&mut self.listening, listening).leave();
    }

    /// As a flag names it.
    pub fn endpoint(&self) -> String {
        self.listening.socket.display().to_string()
    }

    /// It says something else from now on.
    pub fn change(&self, change: impl FnOnce(&mut SignerSays)) {
        change(&mut self.state().says);
    }

    /// A key of its own, as it tells it. It is made if it is not there yet.
    pub fn key(&self, id: &str, is_excluded: bool) -> SaidKey {
        self.state().said(id, is_excluded)
    }

    /// It is gone, with its connections and its socket, as one that crashed and was cleaned up after.
    pub fn die(&self) {
        self.listening.die();
    }

    pub fn asked(&self) -> AskedSigner {
        self.state().asked
    }

    fn state(&self) -> MutexGuard<'_, SignerState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SignerSays {
    /// - `method`: the last part of its path.
    pub fn does(&mut self, method: &'static str, mischief: SignerMischief) {
        self.mischief.insert(method, mischief);
    }
}

impl SignerState {
    fn pair(&mut self, id: &str) -> &EcdsaKeyPair {
        self.pairs.entry(id.to_owned()).or_insert_with(|| {
            let (random, algorithm) = (SystemRandom::new(), &ECDSA_P256_SHA256_FIXED_SIGNING);
            let made = EcdsaKeyPair::generate_pkcs8(algorithm, &random).expect("a key");
            EcdsaKeyPair::from_pkcs8(algorithm, made.as_ref(), &random).expect("a key")
        })
    }

    fn said(&mut self, id: &str, is_excluded: bool) -> SaidKey {
        let der = [&P256[..], self.pair(id).public_key().as_ref()].concat();
        SaidKey { id: id.to_owned(), der, is_excluded }
    }

    fn answered(&mut self, path: &str, message: &[u8]) -> Answered {
        let method = path.strip_prefix("/v1.ExternalJWTSigner/").unwrap_or_default();
        match method {
            "Sign" => self.asked.sign += 1,
            "FetchKeys" => self.asked.fetch_keys += 1,
            "Metadata" => self.asked.metadata += 1,
            _ => return Answered::Failed(12, format!("unknown method {path}")),
        }
        match self.says.mischief.get(method) {
            Some(SignerMischief::Fails(code, text)) => Answered::Failed(*code, (*text).to_owned()),
            Some(SignerMischief::Hangs) => Answered::Never,
            Some(SignerMischief::Floods(bytes)) => Answered::Flood(*bytes),
            None => Answered::Message(match method {
                "Sign" => self.signed(message),
                "FetchKeys" => self.told_keys(),
                _ => {
                    let mut out = Vec::new();
                    put_number(&mut out, 1, self.says.max_seconds);
                    out
                }
            }),
        }
    }

    fn signed(&mut self, message: &[u8]) -> Vec<u8> {
        let fields = fields(message);
        let claims = fields.iter().find(|(of, _)| *of == 1).map_or(&[][..], |(_, claims)| *claims);
        let says = self.says.clone();
        let due = || json!({ "alg": "ES256", "kid": says.signs_with, "typ": "JWT" }).to_string();
        let header = URL_SAFE_NO_PAD.encode(says.header.clone().unwrap_or_else(due));
        let signed = [header.as_bytes(), b".", claims].concat();
        let signature = self.pair(&says.signs_with).sign(&SystemRandom::new(), &signed).expect("signed");
        let signature = says.signature.unwrap_or_else(|| URL_SAFE_NO_PAD.encode(signature));
        let mut out = Vec::new();
        put(&mut out, 1, header.as_bytes());
        put(&mut out, 2, signature.as_bytes());
        out
    }

    fn told_keys(&self) -> Vec<u8> {
        let mut out = Vec::new();
        for key in &self.says.keys {
            let mut told = Vec::new();
            put(&mut told, 1, key.id.as_bytes());
            put(&mut told, 2, &key.der);
            put_number(&mut told, 3, i64::from(key.is_excluded));
            put(&mut out, 1, &told);
        }
        if let Some((seconds, nanos)) = self.says.at {
            let mut at = Vec::new();
            put_number(&mut at, 1, seconds);
            put_number(&mut at, 2, nanos);
            put(&mut out, 2, &at);
        }
        put_number(&mut out, 3, self.says.refresh_seconds);
        out
    }
}
