//! Every flag of this command and of kube-apiserver v1.36, each with what becomes of it.
//!
//! One table in three files by class. Parsing, help, completion and the check of the configuration file read
//! it.

use super::accepted::ACCEPTED;
use super::refused::REFUSED;
use super::served::SERVED;
use super::served_audit::SERVED_AUDIT;
use super::served_tls::SERVED_TLS;
use super::spec::Flag;

/// All flags: the served ones first, in the order of `--help`.
pub fn all() -> impl Iterator<Item = &'static Flag> {
    served().chain(ACCEPTED).chain(REFUSED)
}

/// The flags that have an effect, in the order of `--help`.
pub fn served() -> impl Iterator<Item = &'static Flag> {
    SERVED.iter().chain(SERVED_TLS).chain(SERVED_AUDIT)
}

/// The flag of this name, without dashes.
pub fn find(name: &str) -> Option<&'static Flag> {
    all().find(|flag| flag.name == name)
}

#[cfg(test)]
mod tests {
    use super::super::spec::{Class, FlagType};
    use super::*;

    #[test]
    fn no_flag_is_in_the_table_twice() {
        let mut names: Vec<_> = all().map(|flag| flag.name).collect();
        names.sort_unstable();
        let twice: Vec<_> = names.windows(2).filter(|pair| pair[0] == pair[1]).collect();
        assert!(twice.is_empty(), "{twice:?}");
    }

    #[test]
    fn what_would_weaken_security_is_refused() {
        for prefix in ["authorization-policy-", "service-account-signing-endpoint"] {
            let mut seen = 0;
            for flag in all().filter(|flag| flag.name.starts_with(prefix)) {
                assert!(matches!(flag.class, Class::Refused(_)), "{}", flag.name);
                seen += 1;
            }
            assert!(seen > 0, "{prefix}");
        }
    }

    #[test]
    fn every_reason_and_help_text_is_one_short_line() {
        for flag in all() {
            let text = match &flag.class {
                Class::Served(help) => help.text,
                Class::Harmless(why) | Class::Refused(why) => why,
                Class::Judged(_) => continue,
            };
            assert!(!text.is_empty() && text.len() <= 100 && !text.contains('\n'), "{}", flag.name);
        }
    }

    #[test]
    fn booleans_show_no_value_and_the_others_do() {
        for flag in served() {
            let help = flag.help().expect("served flags have help");
            assert_eq!(help.value.is_empty(), flag.kind == FlagType::Bool, "{}", flag.name);
        }
    }
}
