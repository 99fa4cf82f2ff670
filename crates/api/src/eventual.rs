//! Answers that are mostly there at once.
//!
//! In: a value, or what comes to one. Out: the value. What is known costs no allocation and no turn of a
//! task; what has to ask elsewhere (a webhook, an issuer of tokens, the store) costs a box.

use std::pin::Pin;
use std::task::{Context, Poll, Waker};

pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// An answer, now or later.
pub enum Eventual<'a, T> {
    Now(T),
    Later(BoxFuture<'a, T>),
}

impl<'a, T> Eventual<'a, T> {
    /// The answer that `work` comes to.
    pub fn later(work: impl Future<Output = T> + Send + 'a) -> Eventual<'a, T> {
        Eventual::Later(Box::pin(work))
    }

    /// The answer, where it is there without waiting for anybody.
    pub fn at_once(self) -> Option<T> {
        match self {
            Eventual::Now(answer) => Some(answer),
            Eventual::Later(mut work) => match work.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                Poll::Ready(answer) => Some(answer),
                Poll::Pending => None,
            },
        }
    }

    /// The answer. Given up, the question is.
    pub async fn wait(self) -> T {
        match self {
            Eventual::Now(answer) => answer,
            Eventual::Later(work) => work.await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_answer_is_the_same_now_and_later() {
        assert_eq!(Eventual::Now(1).wait().await, 1);
        let later = Eventual::later(async {
            tokio::task::yield_now().await;
            2
        });
        assert_eq!(later.wait().await, 2);
    }

    #[tokio::test]
    async fn an_answer_that_is_there_is_had_without_waiting() {
        assert_eq!(Eventual::Now(1).at_once(), Some(1));
        assert_eq!(Eventual::later(async { 2 }).at_once(), Some(2));
        assert_eq!(Eventual::<u8>::later(std::future::pending()).at_once(), None);
    }
}
