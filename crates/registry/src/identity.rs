//! What a server is called, and what its Lease says of it.
//!
//! In: what the host is called, and where the server is reached. Out: a name that is the same after each
//! start. Never: writes the Lease, which `lease.rs` does.
//!
//! Source: kubernetes v1.36.3 `controlplane/apiserver/server.go`; component-helpers v0.36.3 `apimachinery/lease`.

pub(crate) mod lease;

use forebay_apimachinery::selector::label_value_faults;
use jiff::Timestamp;
use serde_json::Value;
use sha2::{Digest, Sha256};

/// Whose Lease it is: those of other components are for leader election.
const LABEL: &str = "apiserver.kubernetes.io/identity";
const COMPONENT: &str = "kube-apiserver";
const HOSTNAME: &str = "kubernetes.io/hostname";
/// How long a server that says nothing is taken to be there, as upstream has it.
const DURATION_SECONDS: u64 = 3_600;

/// What a server is called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    pub(crate) name: String,
    hostname: String,
}

impl Identity {
    /// The server on the host `hostname`, of the same name after each start.
    ///
    /// - `place`: where it is reached, which tells servers of one host apart; none for one that is alone on
    ///   its store, which has the name that kube-apiserver would have there.
    pub fn new(hostname: &str, place: Option<&str>) -> Identity {
        let mut hash = Sha256::new();
        for part in [Some(hostname), Some(COMPONENT), place].into_iter().flatten() {
            // Two bytes say how long it is: a longer one has no second meaning here.
            hash.update((part.len() as u16).to_be_bytes());
            hash.update(part);
        }
        let name = format!("apiserver-{}", base32(&hash.finalize()[..16]));
        Identity { name, hostname: hostname.to_owned() }
    }

    /// What it is called among the servers of its store.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Makes `lease` say that `holder` is there `now`.
    pub(crate) fn put_into(&self, lease: &mut Value, holder: &str, now: Timestamp) {
        lease["metadata"]["labels"][LABEL] = COMPONENT.into();
        // A host may have a name that is no label.
        if label_value_faults(&self.hostname).is_empty() {
            lease["metadata"]["labels"][HOSTNAME] = self.hostname.as_str().into();
        }
        lease["spec"]["holderIdentity"] = holder.into();
        lease["spec"]["leaseDurationSeconds"] = DURATION_SECONDS.into();
        lease["spec"]["renewTime"] = now.strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string().into();
    }
}

/// RFC 4648 in lower case, without padding.
fn base32(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
    let bits = bytes.iter().flat_map(|byte| (0..8).rev().map(move |bit| byte >> bit & 1));
    let bits: Vec<u8> = bits.collect();
    let letter = |five: &[u8]| {
        let number = five.iter().fold(0, |number, bit| number << 1 | bit);
        char::from(LETTERS[usize::from(number << (5 - five.len()))])
    };
    bits.chunks(5).map(letter).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_lone_server_has_the_name_that_kube_apiserver_has_there() {
        for (hostname, name) in [
            ("node-1", "apiserver-lgabes5ywnaqeagh5dny4zlzs4"),
            ("example.org", "apiserver-dzfmufcbmcqhprkionatesolty"),
        ] {
            assert_eq!(Identity::new(hostname, None).name, name);
        }
        let here = |place| Identity::new("node-1", Some(place)).name;
        assert_eq!(here("192.0.2.1:6443"), here("192.0.2.1:6443"));
        assert_ne!(here("192.0.2.1:6443"), here("192.0.2.1:7443"));
    }

    #[test]
    fn a_host_whose_name_is_no_label_is_left_out_of_the_labels() {
        let labels = |hostname: &str| {
            let mut lease = json!({});
            Identity::new(hostname, None).put_into(&mut lease, "h", Timestamp::UNIX_EPOCH);
            assert_eq!(lease["spec"]["renewTime"], "1970-01-01T00:00:00.000000Z");
            lease["metadata"]["labels"].clone()
        };
        assert_eq!(labels("node-1"), json!({ LABEL: COMPONENT, HOSTNAME: "node-1" }));
        assert_eq!(labels(&"n".repeat(64)), json!({ LABEL: COMPONENT }));
    }
}
