//! Certificates for servers that the tests start, made with openssl.

use std::path::Path;
use std::process::Command;

/// Makes an authority that no client knows: `<name>.pem`, with its key in `<name>.key`. In their certificates all of them have one
/// name, so that they are told apart by their keys alone.
///
/// # Panics
/// If openssl is not installed, or fails.
pub fn authority(directory: &Path, name: &str) {
    let (certificate, key) = (format!("{name}.pem"), format!("{name}.key"));
    let new = [
        "req",
        "-x509",
        "-days",
        "2",
        "-subj",
        "/CN=authority",
        "-out",
        &certificate,
    ];
    openssl(directory, &[&new[..], &KEY, &["-keyout", &key]].concat());
}

/// Makes a certificate of the authority for 127.0.0.1, for a server or a client: `<name>.pem`, with its key in `<name>.key`.
///
/// # Panics
/// If openssl is not installed, or fails.
pub fn certificate(directory: &Path, authority: &str, name: &str) {
    let subject = format!("/CN={name}");
    let file = |ending: &str| format!("{name}.{ending}");
    let (request, key, certificate) = (file("csr"), file("key"), file("pem"));
    let asked = ["req", "-subj", &subject, "-out", &request, "-keyout", &key];
    openssl(directory, &[&asked[..], &KEY].concat());
    // With extensions, as a certificate without any is of the first version, which TLS takes no more.
    let extensions = "subjectAltName=IP:127.0.0.1\nextendedKeyUsage=serverAuth,clientAuth\n";
    std::fs::write(directory.join("extensions"), extensions).expect("the directory is there");
    let (by, by_key) = (format!("{authority}.pem"), format!("{authority}.key"));
    let signed = [
        "x509",
        "-req",
        "-days",
        "2",
        "-in",
        &request,
        "-CA",
        &by,
        "-CAkey",
        &by_key,
        "-CAcreateserial",
        "-extfile",
        "extensions",
        "-out",
        &certificate,
    ];
    openssl(directory, &signed);
}

/// A new key, of a kind that is made in no time.
const KEY: [&str; 5] = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"];

fn openssl(directory: &Path, arguments: &[&str]) {
    let made = Command::new("openssl").args(arguments).current_dir(directory).output();
    let made = made.expect("openssl runs");
    let said = String::from_utf8_lossy(&made.stderr);
    assert!(made.status.success(), "{arguments:?}: {said}");
}
