//! The file is followed while the server runs: what it says is put in force once all of it is well.
//!
//! In: the file, looked at every [`RELOAD_PERIOD`](limits::RELOAD_PERIOD). Out: what is in force, whole; one
//! that is wrong, or whose plugins are not well, changes nothing, and the log and a metric say so. Owner: one
//! task.
//!
//! Source: apiserver v0.36.3 `server/options/encryptionconfig/controller/controller.go`.

use std::sync::Arc;

use crate::config::{EncryptionConfiguration, Reload};
use crate::encryption::Encryption;
use crate::in_force::{InForce, Making, hash_of, read_configuration};
use crate::limits;

impl Encryption {
    /// Follows the file for as long as the server runs; ready at once if that was not asked for.
    pub async fn follow(self: Arc<Encryption>) {
        if self.settings.reload == Reload::Never {
            return;
        }
        let clock = self.settings.clock.clone();
        let mut pause = limits::RELOAD_PAUSE.0;
        loop {
            let reloaded = self.reload().await;
            match &reloaded {
                Ok(false) => {}
                Ok(true) => {
                    tracing::info!("another encryption configuration is in force");
                    self.metrics().reloaded(true, clock.unix_ms());
                }
                Err(why) => {
                    let file = self.settings.file.display();
                    tracing::error!(%file, why, "the encryption configuration is not taken");
                    self.metrics().reloaded(false, clock.unix_ms());
                }
            }
            if reloaded.is_ok() {
                pause = limits::RELOAD_PAUSE.0;
                clock.sleep(limits::RELOAD_PERIOD).await;
            } else {
                clock.sleep(pause).await;
                pause = (pause * 2).min(limits::RELOAD_PAUSE.1);
            }
        }
    }

    /// Puts what the file says in force, if that is something else than what is. Whether it was.
    ///
    /// # Errors
    /// Why it cannot be.
    pub(crate) async fn reload(&self) -> Result<bool, String> {
        let (file, known) = (self.settings.file.clone(), self.current.load().hash.clone());
        let read = forebay_rt::blocking(move || match hash_of(&file)? == known {
            true => Ok(None),
            false => read_configuration(&file, Reload::Automatic).map(Some),
        });
        let read = read.await.map_err(|error| error.to_string())??;
        let Some((configuration, hash)) = read else { return Ok(false) };
        self.put_in_force(&configuration, hash).await
    }

    /// The same of what was read, which may be what is in force: the file was read twice.
    pub(crate) async fn put_in_force(
        &self,
        configuration: &EncryptionConfiguration,
        hash: String,
    ) -> Result<bool, String> {
        if self.current.load().hash == hash {
            return Ok(false);
        }
        let Encryption { places, rekeyed, settings, .. } = self;
        let making = Making { places, clock: &settings.clock, metrics: self.metrics(), rekeyed };
        let next = InForce::new(configuration, hash, &making)?;
        next.prime().await;
        self.wait_until_well(&next).await?;
        let next = Arc::new(next);
        let earlier = self.current.load_full();
        next.inherit(&earlier);
        self.metrics().in_force(&next.hash);
        self.current.store(next);
        self.rekeyed.note();
        Ok(true)
    }

    async fn wait_until_well(&self, next: &InForce) -> Result<(), String> {
        let clock = &self.settings.clock;
        let until = clock.now() + next.grace();
        loop {
            match next.ask_ill().await {
                Ok(()) => return Ok(()),
                Err(why) if clock.now() >= until => {
                    return Err(format!(
                        "health check for new transformers failed, polling error timed out waiting for the condition: {why}"
                    ));
                }
                Err(_) => clock.sleep(limits::RELOAD_HEALTH_PERIOD).await,
            }
        }
    }
}
