//! Which lease, who asks for it, and how long everything lasts.
//!
//! In: names and durations. Out: a [`Config`] that was checked. Never: changes once an elector runs.

use forebay_rt::{Duration, Random};

use super::limits;

/// An elector's lease and times.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Namespace of the Lease.
    pub namespace: String,
    /// Name of the Lease.
    pub name: String,
    /// Who leads, as written into the Lease. No two electors that run at a time may have the same one: see
    /// [`identity`].
    pub identity: String,
    /// How long candidates leave a lease alone that they do not see renewed. Whole seconds; a fraction is cut
    /// off.
    pub lease_duration: Duration,
    /// How long a leader leads after it last asked for a renewal that was granted.
    pub renew_deadline: Duration,
    /// Between two attempts.
    pub retry_period: Duration,
    /// A candidate waits for `retry_period` and up to this share of it more.
    pub jitter: f64,
    /// What becomes of the lease when leadership ends.
    pub on_end: OnEnd,
}

/// What a leader does with its lease once it no longer leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnEnd {
    /// Gives it back, so that the next one need not wait for it to run out. It is given back after
    /// [`super::Callbacks::stopped_leading`] has ended.
    Release,
    /// Lets it run out.
    RunOut,
}

/// Why an elector cannot run as it is configured.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// Nobody, or nothing.
    #[error("{field} is empty")]
    Empty { field: &'static str },
    /// A leader would still lead when another one may.
    #[error("lease duration {lease:?} in whole seconds is not longer than renew deadline {deadline:?}")]
    LeaseTooShort { lease: Duration, deadline: Duration },
    /// A leader would stop before its second attempt.
    #[error("renew deadline {deadline:?} is not longer than retry period {retry:?} with its jitter")]
    DeadlineTooShort { deadline: Duration, retry: Duration },
    /// Attempts without a pause, or a jitter that is no share.
    #[error("retry period {retry:?} with jitter {jitter} is no wait")]
    NoWait { retry: Duration, jitter: String },
}

/// An identity that no other process has: `name`, an underscore and a random UUID.
pub fn identity(name: &str, random: &Random) -> String {
    format!("{name}_{}", random.uuid())
}

impl Config {
    /// The times that client-go recommends, see [`limits`]; the lease is given back in the end.
    pub fn new(namespace: impl Into<String>, name: impl Into<String>, identity: impl Into<String>) -> Config {
        Config {
            namespace: namespace.into(),
            name: name.into(),
            identity: identity.into(),
            lease_duration: limits::LEASE_DURATION,
            renew_deadline: limits::RENEW_DEADLINE,
            retry_period: limits::RETRY_PERIOD,
            jitter: limits::JITTER,
            on_end: OnEnd::Release,
        }
    }

    /// Whether an elector can run like this.
    ///
    /// # Errors
    /// The first reason against it.
    ///
    /// Source: client-go `tools/leaderelection/leaderelection.go`, `NewLeaderElector`.
    pub fn check(&self) -> Result<(), ConfigError> {
        let names = [("namespace", &self.namespace), ("name", &self.name), ("identity", &self.identity)];
        if let Some((field, _)) = names.into_iter().find(|(_, value)| value.is_empty()) {
            return Err(ConfigError::Empty { field });
        }
        let (retry, deadline, lease) = (self.retry_period, self.renew_deadline, self.lease_duration);
        if retry.is_zero() || !(0.0..=100.0).contains(&self.jitter) {
            return Err(ConfigError::NoWait { retry, jitter: self.jitter.to_string() });
        }
        if deadline <= retry.mul_f64(self.jitter.max(1.0)) {
            return Err(ConfigError::DeadlineTooShort { deadline, retry });
        }
        if Duration::from_secs(self.lease_seconds().unsigned_abs().into()) <= deadline {
            return Err(ConfigError::LeaseTooShort { lease, deadline });
        }
        Ok(())
    }

    /// What is written into the lease.
    pub(super) fn lease_seconds(&self) -> i32 {
        i32::try_from(self.lease_duration.as_secs()).unwrap_or(i32::MAX)
    }

    /// How long one request may take.
    pub(super) fn request_timeout(&self) -> Duration {
        self.renew_deadline / limits::REQUESTS_A_DEADLINE
    }

    /// How long a leader's work has to end: what is left of the lease then by the leader's own clock.
    pub(super) fn stop_timeout(&self) -> Duration {
        self.lease_duration.saturating_sub(self.renew_deadline)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Changes the usual configuration and says whether it is still one.
    fn check(change: impl FnOnce(&mut Config)) -> Result<(), String> {
        let mut config = Config::new("ns", "lease", "a");
        change(&mut config);
        config.check().map_err(|error| error.to_string())
    }

    #[test]
    fn what_cannot_keep_two_leaders_apart_is_refused() {
        let ms = Duration::from_millis;
        assert_eq!(check(|_| {}), Ok(()));
        assert_eq!(check(|it| it.jitter = 0.0), Ok(()));
        let mut said = Vec::new();
        said.extend(check(|it| it.namespace.clear()).err());
        said.extend(check(|it| it.identity.clear()).err());
        said.extend(check(|it| it.renew_deadline = ms(15_000)).err());
        said.extend(check(|it| (it.lease_duration, it.renew_deadline) = (ms(15_900), ms(15_500))).err());
        said.extend(check(|it| it.renew_deadline = ms(2_400)).err());
        said.extend(check(|it| (it.renew_deadline, it.jitter) = (ms(2_000), 0.5)).err());
        said.extend(check(|it| it.retry_period = ms(0)).err());
        said.extend(check(|it| it.jitter = f64::NAN).err());
        said.extend(check(|it| it.jitter = -0.1).err());
        let wanted = [
            "namespace is empty",
            "identity is empty",
            "lease duration 15s in whole seconds is not longer than renew deadline 15s",
            "lease duration 15.9s in whole seconds is not longer than renew deadline 15.5s",
            "renew deadline 2.4s is not longer than retry period 2s with its jitter",
            "renew deadline 2s is not longer than retry period 2s with its jitter",
            "retry period 0ns with jitter 1.2 is no wait",
            "retry period 2s with jitter NaN is no wait",
            "retry period 2s with jitter -0.1 is no wait",
        ];
        assert_eq!(said, wanted);
    }

    #[test]
    fn identities_differ_also_of_one_name() {
        let random = Random::seeded(1);
        let (one, other) = (identity("host", &random), identity("host", &random));
        assert!(one.starts_with("host_") && one.len() == 41, "{one}");
        assert_ne!(one, other);
    }
}
