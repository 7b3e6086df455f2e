-- The counts of `lastbyte zeek --format json`, from what `lastbyte zeek --parquet FOLDER` writes. A table or view
-- `connections` stands for the folder, as in DataFusion:
--
--     CREATE EXTERNAL TABLE connections STORED AS PARQUET LOCATION 'FOLDER/';

-- joined
SELECT count(*) AS joined FROM connections WHERE joined;

-- tls
SELECT version,
       count(*) AS "rows",
       count(handshake) AS established,
       count(*) FILTER (WHERE handshake = 'resumed') AS resumed
FROM connections
WHERE NOT quic
GROUP BY version
ORDER BY version;

-- quic
SELECT count(handshake) AS "rows",
       count(*) FILTER (WHERE handshake = 'resumed') AS resumed
FROM connections
WHERE quic;

-- over_quic
SELECT count(*) AS handshakes,
       count(*) FILTER (WHERE quic) AS quic
FROM connections
WHERE handshake IS NOT NULL AND version NOT LIKE 'DTLS%';

-- classes
SELECT class, quic,
       count(*) AS handshakes,
       count(*) FILTER (WHERE handshake = 'resumed') AS resumed
FROM connections
WHERE handshake IS NOT NULL AND version NOT LIKE 'DTLS%'
GROUP BY class, quic
ORDER BY class, quic;

-- bytes_per_connection
SELECT class, handshake, count(*) AS connections
FROM connections
WHERE handshake IS NOT NULL AND usable AND NOT quic AND version NOT LIKE 'DTLS%'
GROUP BY class, handshake
ORDER BY class, handshake;
