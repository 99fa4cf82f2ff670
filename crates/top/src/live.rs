//! The screen, drawn again every so often, until somebody has seen enough.
//!
//! In: a server, a terminal. Out: when a key ends it, or an error that does not pass by itself.

use forebay_usage::table::TableShape;

use crate::error::TopError;
use crate::limits::PERIOD;
use crate::screen::{Follows, Screen};
use crate::source::AskedServer;
use crate::terminal::Terminal;

/// Shows who uses the server of `source`. What goes wrong after the first answer is shown, and asked again.
///
/// # Errors
/// What is wrong with the first answer; later what does not pass by itself.
pub async fn live(source: &AskedServer, layout: TableShape) -> Result<(), TopError> {
    let first = source.flows().await?;
    let mut terminal = Terminal::take()?;
    let mut screen = Screen::new(source.address(), layout);
    screen.said(first);
    loop {
        terminal.write(&screen.drawn(terminal.size()))?;
        let next = source.clock().now() + PERIOD;
        if !wait(source, &mut terminal, &mut screen, next).await? {
            return Ok(());
        }
        let answer = tokio::select! {
            biased;
            quits = quits(&mut terminal, &mut screen) => return quits,
            answer = source.flows() => answer,
        };
        match answer {
            Ok(flows) => screen.said(flows),
            Err(error) if error.passes() => {
                screen.failed(&error.line());
                let pause = error.pause().map(|pause| source.clock().now() + pause);
                terminal.write(&screen.drawn(terminal.size()))?;
                // It is left alone for as long as it asked to be, whoever presses keys.
                if let Some(until) = pause {
                    while source.clock().now() < until {
                        if !wait(source, &mut terminal, &mut screen, until).await? {
                            return Ok(());
                        }
                    }
                }
            }
            Err(error) => return Err(error),
        }
    }
}

/// Looks at keys until it is time, or one asks for it. Returns whether to go on.
async fn wait(
    source: &AskedServer,
    terminal: &mut Terminal,
    screen: &mut Screen,
    until: forebay_rt::Instant,
) -> Result<bool, TopError> {
    loop {
        let key = tokio::select! {
            biased;
            key = terminal.key() => key,
            () = source.clock().sleep_until(until) => return Ok(true),
        };
        match key.map(|key| screen.key(key)) {
            None | Some(Follows::Quit) => return Ok(false),
            Some(Follows::Ask) => return Ok(true),
            Some(Follows::Draw) => terminal.write(&screen.drawn(terminal.size()))?,
            Some(Follows::Nothing) => {}
        }
    }
}

/// Looks at keys until one ends it.
async fn quits(terminal: &mut Terminal, screen: &mut Screen) -> Result<(), TopError> {
    loop {
        match terminal.key().await.map(|key| screen.key(key)) {
            None | Some(Follows::Quit) => return Ok(()),
            Some(Follows::Draw) => terminal.write(&screen.drawn(terminal.size()))?,
            Some(Follows::Ask | Follows::Nothing) => {}
        }
    }
}
