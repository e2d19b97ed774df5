//! The login of a store: files of a mounted Secret, which the kubelet renews.

use crate::object_store::error::StoreError;
use dyno_hosts::kubernetes::controller::STORE_KEYS;
use dyno_types::bounded;
use dyno_types::limits::LINE_BYTES;
use dyno_types::secret::remember;
use rusty_s3::Credentials;
use std::io::ErrorKind;
use std::path::Path;

/// The key that only a login for a time has.
const TOKEN: &str = "AWS_SESSION_TOKEN";

/// Reads the login as it is now.
pub(super) fn read_login(folder: &Path) -> Result<Credentials, StoreError> {
    let read = |key: &str| match bounded::text_file(folder.join(key), LINE_BYTES as u64) {
        Ok(text) => Ok(Some(text.trim().to_owned()).filter(|text| !text.is_empty())),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(source) => Err(StoreError::Io { path: folder.join(key), source }),
    };
    let needed = |key: &'static str| read(key)?.ok_or(StoreError::NoLogin { key, folder: folder.to_owned() });
    let [key, secret] = STORE_KEYS;
    let (key, secret, token) = (needed(key)?, needed(secret)?, read(TOKEN)?);
    // No error, log or record shows them.
    [Some(&secret), token.as_ref()].into_iter().flatten().for_each(|value| remember(value));
    Ok(match token {
        Some(token) => Credentials::new_with_token(key, secret, token),
        None => Credentials::new(key, secret),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_types::secret::conceal;

    #[test]
    fn a_login_is_read_as_it_is_now_and_never_shown() {
        let folder = tempfile::tempdir().unwrap();
        let put = |key: &str, value: &str| std::fs::write(folder.path().join(key), value).unwrap();
        let error = read_login(folder.path()).unwrap_err();
        assert!(error.to_string().contains("no AWS_ACCESS_KEY_ID"), "{error}");
        put("AWS_ACCESS_KEY_ID", "AKIA1\n");
        put("AWS_SECRET_ACCESS_KEY", "first-quite-secret");
        let first = read_login(folder.path()).unwrap();
        assert_eq!((first.key(), first.secret(), first.token()), ("AKIA1", "first-quite-secret", None));
        put("AWS_SECRET_ACCESS_KEY", "second-quite-secret");
        put("AWS_SESSION_TOKEN", "for-an-hour-only");
        let second = read_login(folder.path()).unwrap();
        assert_eq!((second.secret(), second.token()), ("second-quite-secret", Some("for-an-hour-only")));
        let shown = conceal("a second-quite-secret b for-an-hour-only c first-quite-secret");
        assert_eq!(shown, "a *** b *** c ***");
    }
}
