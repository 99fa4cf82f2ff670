//! Bodies that come slowly, or not at all.

use forebay_rt::{Clock, Duration};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::timeout;

use super::frames::*;
use crate::config::FlowControl;
use crate::tests::server::{KNOWN, Server, Setup, WAIT};

const POST: &str = "/apis/authentication.k8s.io/v1/selfsubjectreviews";

fn post(stream: u32) -> Vec<u8> {
    frame(HEADERS, END_HEADERS, stream, &block(&fields("POST", POST)))
}

#[tokio::test]
async fn bodies_that_do_not_come_keep_nobody_from_writing() {
    let server =
        Server::start(Setup { writes_max: 3, flow_control: FlowControl::MaxInFlight, ..Setup::default() })
            .await;
    let mut slow = Frames::begin(&server).await;
    for stream in 0..100 {
        slow.send(&post(2 * stream + 1)).await.expect("open");
    }
    // It has been read up to here.
    slow.send(&get(1_001, "/version")).await.expect("open");
    assert_eq!(slow.said_until(1_001).await, ["1001:200"]);
    let mut other = Frames::begin(&server).await;
    for stream in [1, 3, 5, 7, 9] {
        other.send(&[post(stream), frame(DATA, END_STREAM, stream, b"{}")].concat()).await.expect("open");
        assert_eq!(other.said_until(stream).await, [format!("{stream}:201")]);
    }
    assert_eq!(server.metric("apiserver_current_inflight_requests{request_kind=\"mutating\"}").await, 0.0);
    // And those go on where they were.
    slow.send(&frame(DATA, END_STREAM, 199, b"{}")).await.expect("open");
    assert_eq!(slow.said_until(199).await, ["199:201"]);
}

#[tokio::test]
async fn a_body_has_a_minute_however_slowly_it_comes() {
    let server = Server::start(Setup::default()).await;
    let clock = Clock::system();
    for every in [Duration::from_secs(3_600), Duration::from_secs(7)] {
        let before = clock.now();
        let mut stream = server.open(b"http/1.1").await;
        let head = format!("POST {POST} HTTP/1.1\r\nHost: x\r\n{KNOWN}Content-Length: 100\r\n\r\n");
        stream.write_all(head.as_bytes()).await.expect("open");
        stream.flush().await.expect("open");
        tokio::time::pause();
        let paused = clock.now();
        let (mut reads, mut writes) = tokio::io::split(stream);
        let trickle = async {
            loop {
                clock.sleep(every).await;
                let _over = writes.write_all(b" ").await;
                let _over = writes.flush().await;
            }
        };
        let mut answer = vec![0; 12];
        tokio::select! {
            read = timeout(WAIT, reads.read_exact(&mut answer)) => drop(read.expect("in time").expect("an answer")),
            () = trickle => {}
        }
        assert_eq!(answer, b"HTTP/1.1 504");
        let (over, minute) = (clock.now(), Duration::from_secs(60));
        assert!(before + minute <= over && over <= paused + minute + Duration::from_secs(1));
        tokio::time::resume();
    }
}
