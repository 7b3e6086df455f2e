"""The pycurl peer of the interop tests: asks once, and prints the response.

    python ask.py PORT SERVER-NAME ROOT [GROUPS]

ROOT is PEM, and GROUPS are OpenSSL's names, joined by colons.
"""

import sys
import pycurl

port, name, root, *groups = sys.argv[1:]

curl = pycurl.Curl()
curl.setopt(pycurl.URL, f"https://{name}:{port}/")
curl.setopt(pycurl.RESOLVE, [f"{name}:{port}:127.0.0.1"])
curl.setopt(pycurl.CAINFO, root)
curl.setopt(pycurl.SSLVERSION, pycurl.SSLVERSION_TLSv1_3)
curl.setopt(pycurl.TIMEOUT, 20)
if groups:
    curl.setopt(pycurl.SSL_EC_CURVES, groups[0])
print(curl.perform_rb().decode())
