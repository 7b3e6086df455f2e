module lastbyte.example/handshakes

go 1.27
