//! Who is told when what a future waits for happens.

use std::task::{Context, Waker};

/// The task that is told: registered once, however often it polls.
#[derive(Debug, Default)]
pub struct Told(Option<Waker>);

impl Told {
    /// Whether the task that polls is another than the one that is told; from now on it is the one.
    pub fn is_news_to(&mut self, cx: &Context<'_>) -> bool {
        let is_news = !self.0.as_ref().is_some_and(|told| told.will_wake(cx.waker()));
        if is_news {
            self.0 = Some(cx.waker().clone());
        }
        is_news
    }
}
