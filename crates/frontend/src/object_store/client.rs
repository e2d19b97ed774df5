//! Requests to one folder of a bucket.

use crate::http_agent::tls;
use crate::object_store::answer::{read_refusal, relative_name};
use crate::object_store::error::StoreError;
use crate::object_store::login::read_login;
use dyno_config::experiment::kubernetes::ObjectStore;
use dyno_types::limits::{STORE_ANSWER_BYTES, STORE_FILE_BYTES, STORE_FILES};
use rusty_s3::actions::ListObjectsV2;
use rusty_s3::{Bucket, Credentials, S3Action, UrlStyle};
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;
use ureq::http::Response;
use ureq::{Agent, Body, Proxy};

/// Time for connecting.
const CONNECT: Duration = Duration::from_secs(10);
/// Time for an answer, and for any part of a body: after it the network counts as cut.
const PATIENCE: Duration = Duration::from_secs(30);
/// Time for which a signed request is taken.
const SIGNED: Duration = Duration::from_secs(900);

/// The folder of one experiment in a bucket. The login is read anew for each request.
#[derive(Debug)]
pub struct StoreClient {
    bucket: Bucket,
    place: String,
    folder: String,
    login: PathBuf,
    agent: Agent,
}

impl StoreClient {
    /// The folder of the controller `name`, with the login in the files of `login`. Nothing is asked yet.
    ///
    /// # Errors
    /// The address is none.
    pub fn open(asked: &ObjectStore, name: &str, login: &Path) -> Result<Self, StoreError> {
        let address = asked.address();
        // Stores of one's own have no names for their buckets, and a certificate of the provider's knows none with dots.
        let style = if asked.endpoint.is_some() || asked.bucket.contains('.') {
            UrlStyle::Path
        } else {
            UrlStyle::VirtualHost
        };
        let wrong = |why: String| StoreError::Address(format!("{address}: {why}"));
        let url = address.parse().map_err(|error| wrong(format!("{error}")))?;
        let bucket = Bucket::new(url, style, asked.bucket.clone(), asked.region.clone())
            .map_err(|error| wrong(error.to_string()))?;
        let mut config = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .timeout_connect(Some(CONNECT))
            .timeout_resolve(Some(CONNECT))
            .timeout_recv_response(Some(PATIENCE))
            .timeout_per_read(Some(PATIENCE))
            .timeout_per_write(Some(PATIENCE))
            .user_agent(format!("dyno/{}", env!("CARGO_PKG_VERSION")))
            .proxy(Proxy::try_from_env());
        if address.starts_with("https://") {
            config = config.tls_config(tls());
        }
        Ok(StoreClient {
            bucket,
            place: format!("{address}, bucket {},", asked.bucket),
            folder: asked.folder(name),
            login: login.to_owned(),
            agent: config.build().into(),
        })
    }

    /// Lists the files below the folder. Keys that lead elsewhere are left out.
    ///
    /// # Errors
    /// There is no login, or the store does not answer or refuses.
    pub fn list_names(&self) -> Result<Vec<String>, StoreError> {
        let login = read_login(&self.login)?;
        let (mut names, mut next) = (Vec::new(), None::<String>);
        loop {
            let mut action = self.bucket.list_objects_v2(Some(&login));
            action.with_prefix(format!("{}/", self.folder));
            next.iter().for_each(|token| action.with_continuation_token(token.as_str()));
            let mut answer = self.request(Request::Get, &action)?;
            let body = answer.body_mut().with_config().limit(STORE_ANSWER_BYTES).read_to_string();
            let body = body.map_err(|source| self.silent(source))?;
            let page = ListObjectsV2::parse_response(&body)
                .map_err(|error| StoreError::Garbled { place: self.place.clone(), why: error.to_string() })?;
            let own = page.contents.iter().filter_map(|object| relative_name(&object.key, &self.folder));
            names.extend(own.map(str::to_owned));
            let again = next;
            next = page.next_continuation_token;
            if next.is_none() {
                return Ok(names);
            }
            if next == again || names.len() > STORE_FILES {
                let why = format!("its list has no end: {} files so far", names.len());
                return Err(StoreError::Garbled { place: self.place.clone(), why });
            }
        }
    }

    /// Puts a file into the store, as long as it is now.
    ///
    /// # Errors
    /// As of [`StoreClient::list_names`]; or the file cannot be read, or is too large.
    pub fn put_file(&self, name: &str, path: &Path) -> Result<(), StoreError> {
        let login = read_login(&self.login)?;
        let failed = |source| StoreError::Io { path: path.to_owned(), source };
        let file = File::open(path).map_err(failed)?;
        let bytes = file.metadata().map_err(failed)?.len();
        if bytes > STORE_FILE_BYTES {
            return Err(StoreError::TooLarge { path: path.to_owned(), bytes });
        }
        let key = self.key(name);
        let action = self.bucket.put_object(Some(&login), &key);
        self.request(Request::Put { file, bytes }, &action).map(drop)
    }

    /// Takes a file out of the store; folders above it are made.
    ///
    /// # Errors
    /// As of [`StoreClient::list_names`]; or the file cannot be written.
    pub fn get_file(&self, name: &str, path: &Path) -> Result<(), StoreError> {
        let login = read_login(&self.login)?;
        let key = self.key(name);
        let action = self.bucket.get_object(Some(&login), &key);
        let mut answer = self.request(Request::Get, &action)?;
        let failed = |source| StoreError::Io { path: path.to_owned(), source };
        // As an experiment makes them: others may neither read nor change what a command follows.
        let mut folders = DirBuilder::new();
        path.parent()
            .map_or(Ok(()), |above| folders.recursive(true).mode(0o700).create(above))
            .map_err(failed)?;
        let mut options = OpenOptions::new();
        let mut file =
            options.write(true).create(true).truncate(true).mode(0o600).open(path).map_err(failed)?;
        let mut body = answer.body_mut().with_config().limit(STORE_FILE_BYTES).reader();
        let mut buffer = vec![0; 64 << 10];
        loop {
            // An answer that breaks off is the store's, and what cannot be written is the disk's.
            let read = body.read(&mut buffer).map_err(|error| self.silent(error.into()))?;
            if read == 0 {
                return Ok(());
            }
            io::Write::write_all(&mut file, &buffer[..read]).map_err(failed)?;
        }
    }

    /// Removes a file from the store; one that is not there is removed.
    ///
    /// # Errors
    /// As of [`StoreClient::list_names`].
    pub fn remove_file(&self, name: &str) -> Result<(), StoreError> {
        let login: Credentials = read_login(&self.login)?;
        let key = self.key(name);
        self.request(Request::Delete, &self.bucket.delete_object(Some(&login), &key)).map(drop)
    }

    fn key(&self, name: &str) -> String {
        format!("{}/{name}", self.folder)
    }

    fn silent(&self, source: ureq::Error) -> StoreError {
        StoreError::Silent { place: self.place.clone(), source: Box::new(source) }
    }

    /// The signed address goes nowhere but to the store: it is a login for a while.
    fn request<'a>(
        &self,
        request: Request,
        action: &impl S3Action<'a>,
    ) -> Result<Response<Body>, StoreError> {
        let url = action.sign(SIGNED);
        let sent = match request {
            Request::Get => self.agent.get(url.as_str()).call(),
            Request::Delete => self.agent.delete(url.as_str()).call(),
            Request::Put { file, bytes } => {
                let body = ureq::SendBody::from_owned_reader(file.take(bytes));
                self.agent.put(url.as_str()).header("Content-Length", bytes.to_string()).send(body)
            }
        };
        let mut answer = sent.map_err(|source| self.silent(source))?;
        let status = answer.status();
        if status.is_success() {
            return Ok(answer);
        }
        let body = answer.body_mut().with_config().limit(STORE_ANSWER_BYTES).read_to_string();
        let (code, message) = read_refusal(&body.unwrap_or_default());
        Err(StoreError::Refused { place: self.place.clone(), status: status.as_u16(), code, message })
    }
}

enum Request {
    Get,
    Delete,
    Put { file: File, bytes: u64 },
}
