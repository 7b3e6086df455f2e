"""curl's client of HTTP/3: asks once, as JSON in a file says.

    curl.py client FILE.json
"""

import json
import sys

import pycurl

GROUPS = {"secp256r1": "P-256", "secp384r1": "P-384", "x25519": "X25519"}
HTTP_3_ONLY = 31

with open(sys.argv[2]) as file:
    end = json.load(file)
address, port = end["address"].split(":")
curl = pycurl.Curl()
curl.setopt(curl.URL, f"https://{end['name']}/")
curl.setopt(curl.HTTP_VERSION, HTTP_3_ONLY)
curl.setopt(curl.RESOLVE, [f"{end['name']}:{port}:{address}"])
curl.setopt(curl.CAINFO, end["root"])
curl.setopt(curl.SSL_EC_CURVES, GROUPS.get(end["group"], end["group"]))
curl.setopt(curl.TIMEOUT, end["seconds"])
curl.setopt(curl.CONNECTTIMEOUT, end["seconds"])
curl.setopt(curl.WRITEFUNCTION, len)
try:
    curl.perform()
except pycurl.error as error:
    sys.exit(f"{error.args[1]} ({error.args[0]})")
