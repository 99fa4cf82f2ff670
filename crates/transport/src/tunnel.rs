//! A connection that speaks a protocol of its own: bytes, both ways.
//!
//! In: a client's connection, and what it leads to. Out: the end of both, as soon as one of them has ended;
//! what that had said until then has arrived. Never: more of either direction than a buffer; a look at what
//! is said.

use forebay_rt::Clock;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

use crate::drain::Drain;
use crate::limits::{TUNNEL_BYTES, WEBSOCKET_CLOSE_WAIT};

/// Carries both ways until one side ends, or the server does.
pub(crate) async fn carry(
    near: impl AsyncRead + AsyncWrite + Unpin,
    far: impl AsyncRead + AsyncWrite + Unpin,
    drain: &Drain,
    clock: &Clock,
) {
    let (mut from_near, mut to_near) = tokio::io::split(near);
    let (mut from_far, mut to_far) = tokio::io::split(far);
    let going = async {
        drain.draining().await;
        clock.sleep(drain.wait() / 2).await;
    };
    let ended = tokio::select! {
        ended = copy(&mut from_near, &mut to_far) => ended,
        ended = copy(&mut from_far, &mut to_near) => ended,
        () = going => Ok(()),
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "an upgraded connection broke");
    }
    // A side that takes nothing any more is not waited for.
    let closed = async {
        let _ = tokio::join!(to_near.shutdown(), to_far.shutdown());
    };
    tokio::select! {
        () = closed => {}
        () = clock.sleep(WEBSOCKET_CLOSE_WAIT) => {}
    }
}

/// Ready when `from` has ended and `to` has all of it.
async fn copy(
    from: &mut (impl AsyncRead + Unpin),
    to: &mut (impl AsyncWrite + Unpin),
) -> std::io::Result<()> {
    let mut buffer = vec![0; TUNNEL_BYTES];
    loop {
        let read = from.read(&mut buffer).await?;
        if read == 0 {
            return to.flush().await;
        }
        to.write_all(&buffer[..read]).await?;
        to.flush().await?;
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::io::duplex;

    use super::*;

    fn parts() -> (Drain, Clock) {
        let clock = Clock::system();
        (Drain::new(clock.clone(), Duration::ZERO), clock)
    }

    #[tokio::test]
    async fn what_one_side_says_arrives_and_its_end_is_the_end_of_both() {
        let ((near, mut client), (far, mut server)) = (duplex(64), duplex(64));
        let (drain, clock) = parts();
        let carried = tokio::spawn(async move { carry(near, far, &drain, &clock).await });
        client.write_all(b"from the client").await.expect("open");
        let mut heard = [0; 15];
        server.read_exact(&mut heard).await.expect("carried");
        assert_eq!(&heard, b"from the client");
        server.write_all(b"the last word").await.expect("open");
        drop(server);
        let mut said = Vec::new();
        client.read_to_end(&mut said).await.expect("an end");
        assert_eq!(said, b"the last word");
        carried.await.expect("no panic");
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_ends_ends_its_tunnels() {
        let ((near, mut client), (far, _server)) = (duplex(64), duplex(64));
        let (drain, clock) = parts();
        drain.begin();
        carry(near, far, &drain, &clock).await;
        let mut said = Vec::new();
        client.read_to_end(&mut said).await.expect("an end");
        assert!(said.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn who_does_not_read_is_not_read_from_beyond_a_buffer() {
        let ((near, client), (far, mut server)) = (duplex(64), duplex(64));
        let (drain, clock) = parts();
        let carried = tokio::spawn(async move { carry(near, far, &drain, &clock).await });
        // 64 bytes at each end, and one buffer.
        let most = TUNNEL_BYTES + 2 * 64;
        let mut sent = 0;
        while let Ok(Ok(written)) =
            tokio::time::timeout(Duration::from_millis(200), server.write(&[b'x'; 64])).await
        {
            sent += written;
            assert!(sent <= most, "{sent}");
        }
        drop(client);
        carried.await.expect("no panic");
    }
}
