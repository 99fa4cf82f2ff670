//! What listens in pods and behind services, as clients meet it through the server.

use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::common::{Ask, Client, Protocol, Scratch, Server, said};

const MERGE: &str = "application/merge-patch+json";
const PODS: &str = "/api/v1/namespaces/default/pods";
const SERVICES: &str = "/api/v1/namespaces/default/services";

/// A site in plain HTTP on an address that others can have.
struct Site {
    address: Ipv4Addr,
    port: u16,
    // Heads of requests.
    asked: Arc<Mutex<Vec<String>>>,
}

impl Site {
    async fn start() -> Site {
        let address = own_address();
        let listener = TcpListener::bind((address, 0)).await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let asked = Arc::<Mutex<Vec<String>>>::default();
        let heads = asked.clone();
        tokio::spawn(async move {
            while let Ok((tcp, _)) = listener.accept().await {
                tokio::spawn(answer(tcp, heads.clone(), format!("{address}:{port}")));
            }
        });
        Site { address, port, asked }
    }

    fn asked(&self) -> Vec<String> {
        std::mem::take(&mut *self.asked.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// An address of this machine that is not its loopback: nothing else is visited.
fn own_address() -> Ipv4Addr {
    let table = std::fs::read_to_string("/proc/net/fib_trie").expect("this system's routes");
    let lines: Vec<&str> = table.lines().map(str::trim).collect();
    let local = lines.windows(2).filter(|pair| pair[1] == "/32 host LOCAL");
    let mut addresses = local.filter_map(|pair| pair[0].trim_start_matches("|-- ").parse().ok());
    addresses.find(|address: &Ipv4Addr| !address.is_loopback()).expect("an address besides the loopback")
}

async fn answer(mut tcp: TcpStream, asked: Arc<Mutex<Vec<String>>>, own: String) -> std::io::Result<()> {
    let mut read = Vec::new();
    let end = loop {
        if let Some(end) = read.windows(4).position(|four| four == b"\r\n\r\n") {
            break end + 4;
        }
        // Who speaks TLS is not spoken to.
        if tcp.read_buf(&mut read).await? == 0 || read[0] == 0x16 {
            return Ok(());
        }
    };
    let head = String::from_utf8_lossy(&read[..end]).to_ascii_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
    let length: usize = length.unwrap_or(0);
    let is_whole = |read: &[u8]| match head.contains("chunked") {
        true => read.ends_with(b"0\r\n\r\n"),
        false => read.len() >= end + length,
    };
    while !is_whole(&read) {
        if tcp.read_buf(&mut read).await? == 0 {
            return Ok(());
        }
    }
    let head = String::from_utf8_lossy(&read[..end]).into_owned();
    let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
    asked.lock().unwrap_or_else(PoisonError::into_inner).push(head);
    let (code, more, body) = match path.split('?').next().unwrap_or_default() {
        "/moved" => ("302 Found", format!("Location: http://{own}/there/\r\n"), String::new()),
        "/text" => ("200 OK", "Content-Type: text/plain\r\n".to_owned(), "<a href=\"/x\">".to_owned()),
        _ => {
            let more = "Content-Type: text/html\r\nAccess-Control-Allow-Origin: *\r\n".to_owned();
            let links = format!("<a href=\"/there?a=1\">/x</a><img src=http://{own}/i.png><a href=\"b\">");
            ("200 OK", more, links)
        }
    };
    let length = body.len();
    let answer =
        format!("HTTP/1.1 {code}\r\nContent-Length: {length}\r\nConnection: close\r\n{more}\r\n{body}");
    tcp.write_all(answer.as_bytes()).await?;
    tcp.shutdown().await
}

async fn pod(admin: &Client, name: &str, address: &str, port: u16) {
    let container = json!({ "name": "c", "image": "i", "ports": [{ "containerPort": port }] });
    let pod = json!({ "metadata": { "name": name }, "spec": { "containers": [container] } });
    admin.post(PODS, &pod).await.expect(201);
    let status = json!({ "status": { "podIP": address, "podIPs": [{ "ip": address }] } });
    let path = format!("{PODS}/{name}/status");
    admin.ask(Ask::patch(path, MERGE, status.to_string())).await.expect(200);
}

#[tokio::test]
async fn what_listens_in_a_pod_is_visited_and_its_links_lead_back() {
    let (scratch, site) = (Scratch::new(), Site::start().await);
    let server = Server::start(&scratch, &[]).await;
    let admin = server.admin().await;
    pod(&admin, "p", &site.address.to_string(), site.port).await;
    pod(&admin, "own", "127.0.0.1", site.port).await;
    let proxy = format!("{PODS}/p/proxy");
    for protocol in Protocol::BOTH {
        let admin = server.admin_over(protocol).await;
        let moved = admin.get(&format!("{proxy}?x=1")).await;
        assert_eq!((moved.code, moved.header("location")), (301, &*format!("{proxy}/?x=1")));
        assert!(site.asked().is_empty());
        let page = admin.ask(Ask::get(format!("{proxy}/a%20b/?x=%2F")).accept("text/html,*/*")).await;
        let links = format!("<a href=\"{proxy}/there?a=1\">/x</a><img src={proxy}/i.png><a href=\"b\">");
        assert_eq!((page.code, page.text()), (200, &*links));
        assert_eq!(page.header("access-control-allow-origin"), "");
        assert_eq!(page.header("cache-control"), "no-cache, private");
        let [asked] = &site.asked()[..] else { panic!("asked once") };
        assert!(asked.starts_with("GET /a%20b/?x=%2F HTTP/1.1\r\n"), "{asked}");
        let asked = asked.to_ascii_lowercase();
        assert!(asked.contains(&format!("x-forwarded-uri: {proxy}/a%20b/\r\n")), "{asked}");
        assert!(!asked.contains("authorization:") && !asked.contains("accept-encoding:"), "{asked}");
        assert!(asked.contains("x-forwarded-for: 127.0.0.1\r\n"), "{asked}");
        // As in kube-apiserver, which a client's URL does not tell.
        assert!(!asked.contains("x-forwarded-host:") && !asked.contains("x-forwarded-proto:"), "{asked}");
        let through = Ask::get(format!("{proxy}/text")).header("x-forwarded-for", "10.1.2.3");
        admin.ask(through).await;
        let [asked] = &site.asked()[..] else { panic!("asked once") };
        assert!(asked.to_ascii_lowercase().contains("x-forwarded-for: 10.1.2.3, 127.0.0.1\r\n"), "{asked}");
        let sent_on = admin.get(&format!("{proxy}/moved")).await;
        assert_eq!((sent_on.code, sent_on.header("location")), (302, &*format!("{proxy}/there/")));
        assert_eq!(admin.get(&format!("{proxy}/text")).await.text(), "<a href=\"/x\">");
        site.asked();
        assert_eq!(admin.get(&format!("{proxy}//a//b//")).await.code, 200);
        let [asked] = &site.asked()[..] else { panic!("asked once") };
        assert!(asked.starts_with("GET /a/b/ HTTP/1.1\r\n"), "{asked}");
        let named = format!("{PODS}/http:p:{}/proxy/text", site.port);
        let made = admin.post(&named, &json!({ "a": 1 })).await;
        assert_eq!((made.code, made.text()), (200, "<a href=\"/x\">"));
        site.asked();
    }
    for (path, why) in [
        ("own/proxy/", "400 BadRequest: address not allowed"),
        ("a:b:c:d/proxy/", "400 BadRequest: invalid pod request \"a:b:c:d\""),
        ("none/proxy/", "404 NotFound: pods \"none\" not found"),
        ("/p/proxy/x", "404 NotFound: the server could not find the requested resource"),
    ] {
        assert_eq!(said(&admin.get(&format!("{PODS}/{path}")).await.json()), why, "{path}");
    }
    let tls = admin.get(&format!("{PODS}/https:p:/proxy/")).await;
    assert_eq!(tls.code, 503, "nothing speaks TLS there");
    assert!(said(&tls.json()).contains("error trying to reach service: "), "{}", tls.text());
}

#[tokio::test]
async fn behind_a_service_a_pod_is_visited_and_nothing_else_that_its_endpoints_name() {
    let (scratch, site) = (Scratch::new(), Site::start().await);
    let server = Server::start(&scratch, &["--controllers="]).await;
    let admin = server.admin().await;
    let account = json!({ "metadata": { "name": "default" } });
    admin.post("/api/v1/namespaces/default/serviceaccounts", &account).await.expect(201);
    let ip = site.address.to_string();
    pod(&admin, "p", &ip, site.port).await;
    let service = json!({
        "metadata": { "name": "s" }, "spec": { "ports": [{ "name": "web", "port": 80 }] },
    });
    admin.post(SERVICES, &service).await.expect(201);
    let endpoints = |of: &str, address: Value| {
        let subset = json!({ "addresses": [address], "ports": [{ "name": "web", "port": site.port }] });
        json!({ "metadata": { "name": of }, "subsets": [subset] })
    };
    let reference = json!({ "kind": "Pod", "namespace": "default", "name": "p" });
    let all = "/api/v1/namespaces/default/endpoints";
    admin.post(all, &endpoints("s", json!({ "ip": ip, "targetRef": reference }))).await.expect(201);
    admin.post(all, &endpoints("any", json!({ "ip": ip }))).await.expect(201);
    for name in ["s:web", "s:80", "http:s:80"] {
        let answer = admin.get(&format!("{SERVICES}/{name}/proxy/text")).await;
        assert_eq!((answer.code, answer.text()), (200, "<a href=\"/x\">"), "{name}");
    }
    site.asked();
    for (name, why) in [
        ("s", "503 ServiceUnavailable: no endpoints available for service \"s\""),
        ("s:81", "503 ServiceUnavailable: no service port 81 found for service \"s\""),
        ("any:web", "503 ServiceUnavailable: no endpoints available for service \"any:web\""),
        ("none:web", "404 NotFound: services \"none\" not found"),
    ] {
        assert_eq!(said(&admin.get(&format!("{SERVICES}/{name}/proxy/")).await.json()), why, "{name}");
    }
    assert!(site.asked().is_empty());
}
