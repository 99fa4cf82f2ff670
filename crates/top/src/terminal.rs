//! The terminal: as the program needs it, and as it was afterwards.
//!
//! In: that the program is about to draw. Out: keys as they are pressed, the size. Owner: [`Terminal`], which
//! puts everything back when it is dropped.

use std::io::{self, IsTerminal as _, Read as _, Write as _};

use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};
use tokio::sync::mpsc;

use crate::error::TopError;
use crate::limits::KEYS_MAX;

/// Another page, without a cursor; and back.
const ENTER: &str = "\x1b[?1049h\x1b[?25l";
const LEAVE: &str = "\x1b[?25h\x1b[?1049l";
/// What is assumed of a terminal that does not say.
const SIZE: (usize, usize) = (80, 24);

/// See the module's doc.
pub struct Terminal {
    before: Termios,
    keys: mpsc::Receiver<u8>,
}

impl Terminal {
    /// Whether there is one to draw on, and to be told by.
    pub fn is_there() -> bool {
        io::stdin().is_terminal() && io::stdout().is_terminal()
    }

    /// Takes it. Keys come as they are pressed, `^C` among them.
    ///
    /// # Errors
    /// [`TopError::Terminal`]
    pub fn take() -> Result<Terminal, TopError> {
        let cause = |cause: rustix::io::Errno| TopError::Terminal(cause.into());
        let before = tcgetattr(io::stdin()).map_err(cause)?;
        let mut raw = before.clone();
        raw.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG);
        let (send, keys) = mpsc::channel(KEYS_MAX);
        std::thread::Builder::new()
            .name("keys".into())
            .spawn(move || read(&send))
            .map_err(TopError::Terminal)?;
        tcsetattr(io::stdin(), OptionalActions::Now, &raw).map_err(cause)?;
        let terminal = Terminal { before, keys };
        terminal.write(ENTER)?;
        Ok(terminal)
    }

    /// Columns and lines.
    pub(crate) fn size(&self) -> (usize, usize) {
        let size = tcgetwinsize(io::stdout()).ok().filter(|size| size.ws_col > 0 && size.ws_row > 0);
        size.map_or(SIZE, |size| (size.ws_col.into(), size.ws_row.into()))
    }

    /// The next key; `None` when there will be none. Cancel-safe.
    pub(crate) async fn key(&mut self) -> Option<u8> {
        self.keys.recv().await
    }

    pub(crate) fn write(&self, text: &str) -> Result<(), TopError> {
        let mut out = io::stdout().lock();
        out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(TopError::Terminal)
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // A terminal that is gone needs nothing of it.
        let _gone = self.write(LEAVE);
        let _gone = tcsetattr(io::stdin(), OptionalActions::Now, &self.before);
    }
}

/// Tells of keys until nobody wants to know.
fn read(keys: &mpsc::Sender<u8>) {
    let mut key = [0];
    while let Ok(1) = io::stdin().lock().read(&mut key) {
        match keys.try_send(key[0]) {
            Err(mpsc::error::TrySendError::Closed(_)) => return,
            // Whoever presses more than can be looked at presses them again.
            Ok(()) | Err(mpsc::error::TrySendError::Full(_)) => {}
        }
    }
}
