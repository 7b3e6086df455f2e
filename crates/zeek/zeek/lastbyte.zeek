##! Logs what ssl.log and conn.log leave out: how large the encrypted part of a TLS 1.3 handshake is, and
##! how long the TCP handshake took. `lastbyte zeek` reads lastbyte.log together with those two.
##!
##! Zeek takes for handshake all encrypted records after the ServerHello until both sides have sent one, so
##! the server's bytes are those of EncryptedExtensions, Certificate, CertificateVerify and Finished, of
##! what it sends before it hears from the client besides, and of the records around them without their
##! headers. Connections that were not established are not logged, nor is QUIC.

@load base/protocols/ssl

module Lastbyte;

export {
	redef enum Log::ID += { LOG };

	## One connection.
	type Info: record {
		## When both sides had sent encrypted records.
		ts: time &log;
		## As in conn.log and ssl.log.
		uid: string &log;
		## Bytes in encrypted records of the client's handshake. Absent below TLS 1.3.
		client_handshake_bytes: count &log &optional;
		## Bytes in encrypted records of the server's handshake. Absent below TLS 1.3.
		server_handshake_bytes: count &log &optional;
		## From the client's last SYN to its first ACK, wherever between the two ends Zeek listens.
		tcp_rtt: interval &log &optional;
	};
}

## What is known of a connection until it is logged.
type State: record {
	syn: time &optional;
	rtt: interval &optional;
	client: count &optional;
	server: count &optional;
};

redef record connection += {
	lastbyte: State &optional;
};

event zeek_init()
	{
	Log::create_stream(Lastbyte::LOG, [$columns=Info, $path="lastbyte"]);
	}

event connection_SYN_packet(c: connection, pkt: SYN_packet)
	{
	if ( ! pkt$is_orig )
		return;

	c$lastbyte = State($syn=network_time());
	}

event connection_first_ACK(c: connection)
	{
	if ( c?$lastbyte && c$lastbyte?$syn )
		c$lastbyte$rtt = network_time() - c$lastbyte$syn;
	}

event ssl_probable_encrypted_handshake_message(c: connection, is_client: bool, length: count)
	{
	if ( ! c?$lastbyte )
		c$lastbyte = State();

	local state = c$lastbyte;

	if ( is_client )
		state$client = state?$client ? state$client + length : length;
	else
		state$server = state?$server ? state$server + length : length;
	}

event ssl_established(c: connection)
	{
	local info = Info($ts=network_time(), $uid=c$uid);

	if ( c?$lastbyte )
		{
		if ( c$lastbyte?$client )
			info$client_handshake_bytes = c$lastbyte$client;

		if ( c$lastbyte?$server )
			info$server_handshake_bytes = c$lastbyte$server;

		if ( c$lastbyte?$rtt )
			info$tcp_rtt = c$lastbyte$rtt;
		}

	Log::write(Lastbyte::LOG, info);
	}
