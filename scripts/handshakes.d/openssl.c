// TLS 1.3 handshakes of OpenSSL with itself, in memory and on one thread, as measure.py asks for them:
//
//     openssl SUITE FOLDER
//
// SUITE is the only cipher suite. FOLDER has a folder of each chain, and of each client's. Built by scripts/handshakes against the headers of each version.
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { NAME = 64, PATH = 4096, MOST = 10000 };

// Before those that count, as in all programs.
static const long WARM_UP = 30 * 1000000L;

struct end {
    SSL_CTX *context;
    long nanoseconds;
};

static const char *suite;
// What the client resumes next: OpenSSL offers a ticket once.
static SSL_SESSION *session;

static void give_up(const char *what) {
    unsigned long code = ERR_get_error();
    fprintf(stderr, "error: %s: %s\n", what, code ? ERR_error_string(code, NULL) : "no reason given");
    exit(1);
}

static long now(clockid_t clock) {
    struct timespec time;
    if (clock_gettime(clock, &time) != 0) {
        give_up("the clock of CPU time");
    }
    return time.tv_sec * 1000000000L + time.tv_nsec;
}

static int keep(SSL *connection, SSL_SESSION *ticket) {
    (void)connection;
    SSL_SESSION_free(session);
    session = ticket;
    return 1;
}

static const char *path(const char *folder, const char *chain, const char *file) {
    static char text[PATH];
    snprintf(text, sizeof text, "%s/%s/%s", folder, chain, file);
    return text;
}

static SSL_CTX *context(const SSL_METHOD *method, const char *group) {
    SSL_CTX *made = SSL_CTX_new(method);
    if (made == NULL || !SSL_CTX_set_min_proto_version(made, TLS1_3_VERSION) ||
        !SSL_CTX_set_ciphersuites(made, suite) || !SSL_CTX_set1_groups_list(made, group)) {
        give_up(group);
    }
    // Debian's clients compress their certificates as they are sent, which no other stack does.
    SSL_CTX_set_options(made, SSL_OP_NO_TX_CERTIFICATE_COMPRESSION | SSL_OP_NO_RX_CERTIFICATE_COMPRESSION);
    return made;
}

static void prove(SSL_CTX *context, const char *folder, const char *chain) {
    if (SSL_CTX_use_certificate_chain_file(context, path(folder, chain, "chain.pem")) != 1 ||
        SSL_CTX_use_PrivateKey_file(context, path(folder, chain, "key.pem"), SSL_FILETYPE_PEM) != 1) {
        give_up(chain);
    }
}

static void verify(SSL_CTX *context, const char *folder, const char *chain) {
    if (!SSL_CTX_load_verify_file(context, path(folder, chain, "root.pem"))) {
        give_up(chain);
    }
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
}

// A turn of one end: whether it is done with the handshake.
static int advance(SSL *connection, struct end *end) {
    long begun = now(CLOCK_THREAD_CPUTIME_ID);
    int result = SSL_do_handshake(connection);
    end->nanoseconds += now(CLOCK_THREAD_CPUTIME_ID) - begun;
    if (result != 1 && SSL_get_error(connection, result) != SSL_ERROR_WANT_READ) {
        give_up("a handshake");
    }
    return result == 1;
}

static SSL *connection(struct end *end, BIO *from, BIO *to) {
    if (from == NULL || to == NULL || !BIO_up_ref(from) || !BIO_up_ref(to)) {
        give_up("memory");
    }
    long begun = now(CLOCK_THREAD_CPUTIME_ID);
    SSL *made = SSL_new(end->context);
    if (made == NULL) {
        give_up("a connection");
    }
    SSL_set_bio(made, from, to);
    end->nanoseconds += now(CLOCK_THREAD_CPUTIME_ID) - begun;
    return made;
}

static void handshake(struct end *client, struct end *server, const char *group, int resume) {
    client->nanoseconds = server->nanoseconds = 0;
    BIO *up = BIO_new(BIO_s_mem()), *down = BIO_new(BIO_s_mem());
    SSL *at_client = connection(client, down, up), *at_server = connection(server, up, down);
    long begun = now(CLOCK_THREAD_CPUTIME_ID);
    if (!SSL_set_tlsext_host_name(at_client, "server.example") || !X509_VERIFY_PARAM_set1_host(SSL_get0_param(at_client), "server.example", 0) ||
        (session != NULL && !SSL_set_session(at_client, session))) {
        give_up("the client");
    }
    SSL_set_connect_state(at_client);
    SSL_set_accept_state(at_server);
    client->nanoseconds += now(CLOCK_THREAD_CPUTIME_ID) - begun;
    int resumed = session != NULL, client_done = 0, server_done = 0;
    for (int turn = 0; turn < 4 && !(client_done && server_done); turn++) {
        client_done = advance(at_client, client);
        server_done = advance(at_server, server);
    }
    if (!client_done || !server_done) {
        give_up("a handshake has no end");
    }
    if (resume) {
        // The ticket that comes behind it.
        char nothing;
        begun = now(CLOCK_THREAD_CPUTIME_ID);
        SSL_read(at_client, &nothing, 1);
        client->nanoseconds += now(CLOCK_THREAD_CPUTIME_ID) - begun;
        if (session == NULL) {
            give_up("no ticket came");
        }
    }
    const char *chosen = SSL_get0_group_name(at_client);
    if (OPENSSL_strcasecmp(chosen, group) != 0 || SSL_session_reused(at_client) != resumed) {
        fprintf(stderr, "error: another handshake than asked for: %s, resumed: %d\n", chosen, SSL_session_reused(at_client));
        exit(1);
    }
    // One that was not ended has its session forgotten.
    SSL_set_shutdown(at_client, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
    SSL_set_shutdown(at_server, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
    begun = now(CLOCK_THREAD_CPUTIME_ID);
    SSL_free(at_client);
    client->nanoseconds += now(CLOCK_THREAD_CPUTIME_ID) - begun;
    begun = now(CLOCK_THREAD_CPUTIME_ID);
    SSL_free(at_server);
    server->nanoseconds += now(CLOCK_THREAD_CPUTIME_ID) - begun;
    BIO_free(up);
    BIO_free(down);
}

static void batch(const char *folder, const char *group, const char *chain, const char *mode, int count) {
    static long times[MOST][2];
    int resume = strcmp(mode, "resumed") == 0;
    struct end client = {context(TLS_client_method(), group), 0}, server = {context(TLS_server_method(), group), 0};
    prove(server.context, folder, chain);
    verify(client.context, folder, chain);
    if (strcmp(mode, "mutual") == 0) {
        char name[NAME + 8];
        snprintf(name, sizeof name, "%s-client", chain);
        prove(client.context, folder, name);
        verify(server.context, folder, name);
    }
    SSL_CTX_set_num_tickets(server.context, resume ? 1 : 0);
    SSL_CTX_set_session_cache_mode(server.context, SSL_SESS_CACHE_OFF);
    if (resume) {
        SSL_CTX_set_session_cache_mode(client.context, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL_STORE);
        SSL_CTX_sess_set_new_cb(client.context, keep);
    }
    for (long begun = now(CLOCK_THREAD_CPUTIME_ID); now(CLOCK_THREAD_CPUTIME_ID) - begun < WARM_UP;) {
        handshake(&client, &server, group, resume);
    }
    long process = now(CLOCK_PROCESS_CPUTIME_ID), thread = now(CLOCK_THREAD_CPUTIME_ID);
    for (int number = 0; number < count; number++) {
        handshake(&client, &server, group, resume);
        times[number][0] = client.nanoseconds;
        times[number][1] = server.nanoseconds;
    }
    thread = now(CLOCK_THREAD_CPUTIME_ID) - thread;
    process = now(CLOCK_PROCESS_CPUTIME_ID) - process;
    printf("%ld", process > thread ? process - thread : 0);
    for (int number = 0; number < count; number++) {
        printf(" %ld,%ld", times[number][0], times[number][1]);
    }
    printf("\n");
    SSL_SESSION_free(session);
    session = NULL;
    SSL_CTX_free(client.context);
    SSL_CTX_free(server.context);
}

int main(int count, char **arguments) {
    if (count != 3) {
        fprintf(stderr, "usage: %s SUITE FOLDER\n", arguments[0]);
        return 2;
    }
    suite = arguments[1];
    printf("%s\n", OpenSSL_version(OPENSSL_VERSION_STRING));
    fflush(stdout);
    char line[4 * NAME], group[NAME], chain[NAME], mode[NAME];
    int handshakes;
    while (fgets(line, sizeof line, stdin) != NULL) {
        if (sscanf(line, "%63s %63s %63s %d", group, chain, mode, &handshakes) != 4 || handshakes < 1 || handshakes > MOST) {
            fprintf(stderr, "error: not GROUP CHAIN MODE COUNT: %s", line);
            return 2;
        }
        batch(arguments[2], group, chain, mode, handshakes);
        fflush(stdout);
    }
    return 0;
}
