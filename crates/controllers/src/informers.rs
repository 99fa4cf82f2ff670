//! Waiting on several informers at once.

use std::future::Future;
use std::pin::Pin;
use std::task::Poll;

use forebay_registry::Informer;

/// Waits until one of them may have a notice; for ever when there is none. Cancel-safe.
pub async fn any_ready(informers: impl IntoIterator<Item = &mut Informer>) {
    type Wait<'a> = Pin<Box<dyn Future<Output = ()> + Send + 'a>>;
    let mut waits: Vec<Wait<'_>> =
        informers.into_iter().map(|informer| Box::pin(informer.ready()) as Wait<'_>).collect();
    std::future::poll_fn(|context| {
        let ready = waits.iter_mut().any(|wait| wait.as_mut().poll(context).is_ready());
        if ready { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}
