//! A request that a row of the document is about, and what has to come back.

use forebay_testing::TestServer;
use kube::Client;
use kube::client::Body;

/// Who asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    /// A member of system:masters.
    Admin,
    /// Nobody: no certificate, no token.
    Anonymous,
}

/// See the module's doc.
#[derive(Clone, Copy, Debug)]
pub struct Ask {
    pub method: &'static str,
    pub path: &'static str,
    pub code: u16,
    who: Who,
    headers: &'static [(&'static str, &'static str)],
    body: &'static str,
    says: &'static str,
}

/// A request without a body.
pub const fn ask(method: &'static str, path: &'static str, code: u16) -> Ask {
    Ask { method, path, code, who: Who::Admin, headers: &[], body: "", says: "" }
}

/// A GET.
pub const fn get(path: &'static str, code: u16) -> Ask {
    ask("GET", path, code)
}

/// A POST of JSON.
pub const fn post(path: &'static str, body: &'static str, code: u16) -> Ask {
    Ask { body, ..ask("POST", path, code) }
}

impl Ask {
    /// With this in the answer.
    pub const fn says(self, says: &'static str) -> Ask {
        Ask { says, ..self }
    }

    /// With these headers. Without a Content-Type a body is JSON.
    pub const fn with(self, headers: &'static [(&'static str, &'static str)]) -> Ask {
        Ask { headers, ..self }
    }

    pub const fn sends(self, body: &'static str) -> Ask {
        Ask { body, ..self }
    }

    pub const fn anonymous(self) -> Ask {
        Ask { who: Who::Anonymous, ..self }
    }
}

/// A server, and clients of both kinds.
pub struct Asked {
    // Ends the server when it is dropped.
    _server: TestServer,
    admin: Client,
    anonymous: Client,
}

impl Asked {
    pub async fn start() -> Asked {
        let server = TestServer::start().await.expect("started");
        let mut config = server.config();
        config.auth_info = kube::config::AuthInfo::default();
        let anonymous = Client::try_from(config).expect("a client");
        Asked { admin: server.client(), anonymous, _server: server }
    }

    /// What is wrong with the answer to `ask`, if something is.
    pub async fn fault(&self, ask: &Ask) -> Option<String> {
        let (code, text) = self.send(ask).await;
        let is_right = code == ask.code && text.contains(ask.says);
        (!is_right).then(|| {
            let short: String = text.chars().take(600).collect();
            format!("{} {}: not {} {:?} but {code}: {short}", ask.method, ask.path, ask.code, ask.says)
        })
    }

    /// The code and the text of the answer.
    pub async fn send(&self, ask: &Ask) -> (u16, String) {
        let mut request = http::Request::builder().method(ask.method).uri(ask.path);
        let mut has_type = ask.body.is_empty();
        for (name, value) in ask.headers {
            has_type |= name.eq_ignore_ascii_case("content-type");
            request = request.header(*name, *value);
        }
        if !has_type {
            request = request.header("Content-Type", "application/json");
        }
        let request = request.body(Body::from(ask.body.as_bytes().to_vec())).expect("a request");
        let client = if ask.who == Who::Admin { &self.admin } else { &self.anonymous };
        let answer = client.send(request).await.unwrap_or_else(|error| panic!("{ask:?}: {error}"));
        let code = answer.status().as_u16();
        let body = answer.into_body().collect_bytes().await;
        let body = body.unwrap_or_else(|error| panic!("{ask:?}: {error}"));
        (code, String::from_utf8_lossy(&body).into_owned())
    }
}
