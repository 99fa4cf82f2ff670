//! Calls over real connections, to webhooks that are what they should not be.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Waker};

use bytes::Bytes;
use forebay_apimachinery::Lease;
use forebay_rt::{Clock, Duration};
use forebay_webhook_client::limits::{
    CALL_COUNTS_MAX, CALL_HELD_BYTES, CALLS_MAX, CALLS_WAITING_BYTES, CALLS_WAITING_MAX,
};
use forebay_webhook_client::{CredentialsOfPlugins, HostCredentials, OwnServer, WebhookClient};
use forebay_webhooks::limits::ANSWER_BYTES_MAX;
use forebay_webhooks::{Answered, Calling, Calls as _, ClientConfig, NoAnswer, WebhookSort};
use futures_util::future::join_all;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// Anything that takes longer than this does not come.
const WAIT: Duration = Duration::from_secs(120);

/// What a webhook does once it has read a request.
#[derive(Clone, Copy)]
enum Does {
    Says(&'static str),
    /// Says so many bytes, and sends fewer.
    Lies,
    /// What it was shown, if anything.
    TellsWhoAsks,
    /// A body without an end.
    Floods,
    Hangs,
    Cuts,
}

struct Webhook {
    port: u16,
    /// Requests that were read.
    read: watch::Receiver<usize>,
}

impl Webhook {
    async fn start(does: Does) -> Webhook {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let (count, read) = watch::channel(0);
        tokio::spawn(async move {
            while let Ok((tcp, _)) = listener.accept().await {
                tokio::spawn(serve(tcp, does, count.clone()));
            }
        });
        Webhook { port, read }
    }

    fn calling(&self) -> Calling {
        calling(&format!("http://127.0.0.1:{}", self.port))
    }
}

async fn serve(mut tcp: TcpStream, does: Does, count: watch::Sender<usize>) -> std::io::Result<()> {
    loop {
        let mut read = Vec::new();
        while !read.ends_with(b"the end") {
            if tcp.read_buf(&mut read).await? == 0 {
                return Ok(());
            }
        }
        count.send_modify(|count| *count += 1);
        match does {
            Does::Says(said) => {
                let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{said}", said.len());
                tcp.write_all(head.as_bytes()).await?;
            }
            Does::TellsWhoAsks => {
                let head = String::from_utf8_lossy(&read).into_owned();
                let shown = head.lines().find_map(|line| line.strip_prefix("authorization: "));
                let said = shown.unwrap_or("nothing");
                let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{said}", said.len());
                tcp.write_all(head.as_bytes()).await?;
            }
            Does::Lies => {
                tcp.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nshort").await?;
                return tcp.shutdown().await;
            }
            Does::Floods => {
                tcp.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await?;
                let piece = vec![b'x'; 1 << 16];
                loop {
                    tcp.write_all(&piece).await?;
                }
            }
            Does::Hangs => std::future::pending().await,
            Does::Cuts => return Ok(()),
        }
    }
}

fn calling(base: &str) -> Calling {
    let client = ClientConfig::read(&json!({ "url": format!("{base}/path") }));
    Calling {
        url: client.url(std::time::Duration::from_secs(10)),
        client,
        sort: Some(WebhookSort::Mutating),
        address: None,
        has_others: false,
        parts: vec![Bytes::from_static(b"from the beginning to "), Bytes::from_static(b"the end")],
        lease: Lease::of_server(),
        holds: 0,
        begun: Arc::default(),
    }
}

async fn answer(client: &WebhookClient, calling: Calling) -> Result<Answered, NoAnswer> {
    tokio::time::timeout(WAIT, client.call(calling)).await.expect("in time")
}

async fn why(does: Does) -> String {
    let webhook = Webhook::start(does).await;
    let client = WebhookClient::new(Clock::system(), CredentialsOfPlugins::default());
    let answered = answer(&client, webhook.calling()).await;
    answered.expect_err("no answer").why().to_owned()
}

/// What is said within this process is said to nobody else, and needs no credential.
#[tokio::test]
async fn the_service_of_this_server_is_asked_within_it_and_no_other_is() {
    let count = Arc::<AtomicUsize>::default();
    let counted = count.clone();
    let own: OwnServer = Arc::new(move |mut stream| {
        counted.fetch_add(1, Ordering::Relaxed);
        Some(Box::pin(async move {
            let mut read = Vec::new();
            while !read.ends_with(b"the end") {
                stream.read_buf(&mut read).await.expect("open");
            }
            let head = String::from_utf8(read).expect("text").to_ascii_lowercase();
            assert!(head.starts_with("post /apis/a.io/v1/reviews?timeout=10s http/1.1\r\n"), "{head}");
            assert!(
                head.contains("host: kubernetes.default.svc") && !head.contains("authorization"),
                "{head}"
            );
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nsaid").await.expect("open");
        }))
    });
    let client = WebhookClient::new(Clock::system(), CredentialsOfPlugins::default()).beside(own);
    let of = |client: serde_json::Value| {
        let client = ClientConfig::read(&client);
        // Nobody listens there.
        let (url, address) = (client.url(std::time::Duration::from_secs(10)), Some("127.0.0.1:1".into()));
        Calling { client, url, address, ..calling("https://localhost") }
    };
    let service = |namespace: &str, name: &str, port: u16| {
        of(json!({ "service": { "namespace": namespace, "name": name, "port": port,
                                "path": "/apis/a.io/v1/reviews" } }))
    };
    for sort in [Some(WebhookSort::Validating), None] {
        let asked = Calling { sort, ..service("default", "kubernetes", 443) };
        assert_eq!(answer(&client, asked).await.expect("an answer").body, "said");
    }
    assert_eq!(count.load(Ordering::Relaxed), 2);
    let by_name = of(json!({ "url": "https://kubernetes.default.svc:443/apis/a.io/v1/reviews" }));
    for asked in [
        service("default", "kubernetes", 6443),
        service("other", "kubernetes", 443),
        service("default", "other", 443),
        by_name,
    ] {
        answer(&client, asked).await.expect_err("nobody is there");
    }
    assert_eq!(count.load(Ordering::Relaxed), 2);
    let nobody: OwnServer = Arc::new(|_| None);
    let client = WebhookClient::new(Clock::system(), CredentialsOfPlugins::default()).beside(nobody);
    let why =
        answer(&client, service("default", "kubernetes", 443)).await.expect_err("it does not serve yet");
    assert_eq!(why.why(), "dial tcp: connect: connection refused");
}

#[tokio::test]
async fn an_answer_comes_back_as_it_was_said() {
    let webhook = Webhook::start(Does::Says("said")).await;
    let client = WebhookClient::new(Clock::system(), CredentialsOfPlugins::default());
    for _ in 0..2 {
        let answered = answer(&client, webhook.calling()).await.expect("an answer");
        assert_eq!((answered.code, &*answered.body), (200, &b"said"[..]));
    }
}

#[tokio::test]
async fn an_answer_that_is_cut_lies_or_has_no_end_is_none() {
    assert_eq!(why(Does::Cuts).await, "EOF");
    let unread = "unexpected error when reading response body. Please retry. Original error: unexpected EOF";
    assert_eq!(why(Does::Lies).await, unread);
    let too_long = format!("the answer is longer than {ANSWER_BYTES_MAX} bytes");
    assert_eq!(why(Does::Floods).await, too_long);
}

#[tokio::test]
async fn a_webhook_that_is_not_there_is_told_as_go_does() {
    let gone = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
    let port = gone.local_addr().expect("an address").port();
    drop(gone);
    let client = WebhookClient::new(Clock::system(), CredentialsOfPlugins::default());
    let answered = answer(&client, calling(&format!("http://127.0.0.1:{port}"))).await;
    let why = format!("dial tcp 127.0.0.1:{port}: connect: connection refused");
    assert_eq!(answered.expect_err("nobody"), NoAnswer::Unreached(why));
}

#[tokio::test]
async fn a_webhook_that_hangs_takes_so_many_calls_and_holds_up_nobody_else() {
    let (mut hanging, other) = (Webhook::start(Does::Hangs).await, Webhook::start(Does::Says("said")).await);
    let client = WebhookClient::new(Clock::system(), CredentialsOfPlugins::default());
    let asked = hanging.calling();
    let stuck = join_all((0..CALLS_MAX + 10).map(|_| client.call(asked.clone())));
    let rest = async {
        let all_there = hanging.read.wait_for(|read| *read == CALLS_MAX);
        tokio::time::timeout(WAIT, all_there).await.expect("in time").expect("it is there");
        answer(&client, other.calling()).await.expect("an answer")
    };
    tokio::select! {
        _ = stuck => panic!("nothing is answered"),
        answered = rest => assert_eq!(&*answered.body, b"said"),
    }
    assert_eq!(*hanging.read.borrow(), CALLS_MAX);
}

#[tokio::test]
async fn behind_a_webhook_that_hangs_so_many_wait_and_the_next_is_told_at_once() {
    let mut hanging = Webhook::start(Does::Hangs).await;
    let client = WebhookClient::new(Clock::system(), CredentialsOfPlugins::default());
    let asked = hanging.calling();
    // Large writes count as several: these have all turns.
    let large = Calling { holds: CALL_COUNTS_MAX * CALL_HELD_BYTES, ..asked.clone() };
    let stuck = join_all((0..CALLS_MAX / CALL_COUNTS_MAX).map(|_| client.call(large.clone())));
    let rest = async {
        let all_there = hanging.read.wait_for(|read| *read == CALLS_MAX / CALL_COUNTS_MAX);
        tokio::time::timeout(WAIT, all_there).await.expect("in time").expect("it is there");
        let waits = |holds: usize| {
            let mut call = client.call(Calling { holds, begun: Arc::default(), ..asked.clone() });
            assert!(call.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
            call
        };
        let refused = async || {
            let asked = Calling { holds: 1, begun: Arc::default(), ..asked.clone() };
            let begun = asked.begun.clone();
            let why = answer(&client, asked).await.expect_err("too many");
            assert!(!begun.load(Ordering::Relaxed) && matches!(why, NoAnswer::Busy(_)), "{why:?}");
            why.why().to_owned()
        };
        let alone = waits(2 * CALLS_WAITING_BYTES);
        assert_eq!(refused().await, "too many calls to it: 1 wait for others to be answered");
        drop(alone);
        let many: Vec<_> = (0..CALLS_WAITING_MAX).map(|_| waits(0)).collect();
        let why = format!("too many calls to it: {} wait for others to be answered", many.len());
        assert_eq!(refused().await, why);
        drop(many);
        drop(waits(1));
    };
    tokio::select! {
        _ = stuck => panic!("nothing is answered"),
        () = rest => {}
    }
    assert_eq!(*hanging.read.borrow(), CALLS_MAX / CALL_COUNTS_MAX);
}

#[tokio::test]
async fn an_address_that_did_not_connect_is_passed_over_where_there_are_others() {
    let gone = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
    let address = gone.local_addr().expect("an address").to_string();
    drop(gone);
    let client = WebhookClient::new(Clock::system(), CredentialsOfPlugins::default());
    let asked = || Calling {
        address: Some(address.clone().into()),
        has_others: true,
        ..calling("https://svc.ns.svc:443")
    };
    let first = answer(&client, asked()).await.expect_err("nobody");
    assert_eq!(first.why(), format!("dial tcp {address}: connect: connection refused"));
    let second = answer(&client, asked()).await.expect_err("nobody");
    assert_eq!(second.why(), "it did not connect a moment ago");
}

#[tokio::test]
async fn a_webhook_is_shown_what_is_named_for_its_host_and_sort() {
    let webhook = Webhook::start(Does::TellsWhoAsks).await;
    let named = json!({ "name": format!("127.0.0.1:{}", webhook.port), "user": { "token": "secret" } });
    let known = HostCredentials::of_kubeconfig(&json!({ "users": [named] }), &|_| Err("no file".to_owned()));
    let mutating = known.expect("credentials");
    let all = CredentialsOfPlugins { mutating, validating: HostCredentials::default() };
    let client = WebhookClient::new(Clock::system(), all);
    for (sort, shown) in [(WebhookSort::Mutating, "Bearer secret"), (WebhookSort::Validating, "nothing")] {
        let answered =
            answer(&client, Calling { sort: Some(sort), ..webhook.calling() }).await.expect("an answer");
        assert_eq!(answered.body, shown);
    }
}
