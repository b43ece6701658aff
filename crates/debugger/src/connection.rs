//! The connection to gdb: loopback only, one client, and ended from outside by a flag.

use durasim_types::{ConfigError, Error};
use gdbstub::conn::{Connection, ConnectionExt};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Time between two looks at the flag.
const LOOK_PERIOD: Duration = Duration::from_millis(100);

/// A client that does not read for this long is gone.
const WRITE_TIMEOUT: Duration = Duration::from_secs(10);

/// Waits for a client on a port of the loopback interface.
pub(crate) struct Listener(TcpListener);

impl Listener {
    /// On this port; 0: on one that is free.
    ///
    /// # Errors
    /// The port is in use, or may not be used.
    pub fn bind(port: u16) -> Result<Self, Error> {
        let bound = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).and_then(|listener| {
            listener.set_nonblocking(true)?;
            Ok(listener)
        });
        let refused = |error: io::Error| {
            let problem = match error.kind() {
                ErrorKind::AddrInUse => format!("port {port} is in use: take another, or 0 for a free one"),
                _ => format!("port {port} cannot be used: {error}"),
            };
            ConfigError::new("gdb", problem).into()
        };
        bound.map(Listener).map_err(refused)
    }

    /// The port.
    pub fn port(&self) -> u16 {
        self.0.local_addr().map_or(0, |addr| addr.port())
    }

    /// The first client; `None` if the flag was set before one came.
    ///
    /// # Errors
    /// The host refuses.
    pub fn client<'a>(&self, stop: &'a AtomicBool) -> Result<Option<Client<'a>>, Error> {
        while !stop.load(Ordering::Relaxed) {
            match self.0.accept() {
                Ok((stream, _)) => return Ok(Some(Client { stream, stop })),
                Err(error) if error.kind() == ErrorKind::WouldBlock => std::thread::sleep(LOOK_PERIOD),
                Err(error) => {
                    let path = format!("port {}", self.port());
                    return Err(Error::HostIo { path, problem: error.to_string() });
                }
            }
        }
        Ok(None)
    }
}

/// A client that is connected.
pub(crate) struct Client<'a> {
    stream: TcpStream,
    stop: &'a AtomicBool,
}

impl Connection for Client<'_> {
    type Error = io::Error;

    fn write(&mut self, byte: u8) -> io::Result<()> {
        self.write_all(&[byte])
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.set_nonblocking(false)?;
        Write::write_all(&mut self.stream, bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Write::flush(&mut self.stream)
    }

    fn on_session_start(&mut self) -> io::Result<()> {
        self.stream.set_read_timeout(Some(LOOK_PERIOD))?;
        self.stream.set_write_timeout(Some(WRITE_TIMEOUT))?;
        Connection::on_session_start(&mut self.stream)
    }
}

impl ConnectionExt for Client<'_> {
    fn read(&mut self) -> io::Result<u8> {
        self.stream.set_nonblocking(false)?;
        let mut byte = [0];
        loop {
            match Read::read(&mut self.stream, &mut byte) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(_) => return Ok(byte[0]),
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                    if self.stop.load(Ordering::Relaxed) {
                        return Err(ErrorKind::Interrupted.into());
                    }
                }
                Err(error) => return Err(error),
            }
        }
    }

    fn peek(&mut self) -> io::Result<Option<u8>> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(ErrorKind::Interrupted.into());
        }
        ConnectionExt::peek(&mut self.stream)
    }
}
