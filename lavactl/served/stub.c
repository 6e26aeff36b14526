/* Stub of a command in C: the same conversation as stub.py beside it, which says what it is for, in a millisecond.
   Built by packaging/stub.sh where there is a compiler. Beside the program is lava-stub.paths: the directory of the whole
   commands, and the agent's socket. Whatever fails before GO, and whatever it does not know, is the whole command's. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
enum { OPEN = 2, MESSAGE = 3, CREDIT = 6, END = 7, MOST = 7 << 20 };
static const char ANEW[] = "lavactl up, or link, writes the commands anew";
static const char METHOD[] = "/lava.local/Command", VERSION[] = "4";
static const char ONCE[] = " bkill bstop bresume brequeue bresize brun btop bbot brsvadd brsvmod brsvdel scancel scontrol ";
extern char **environ;
static char paths[8192], *full, *at_socket, **words, *name;
static int agent = -1, kept = -1, shown, taken, submits;
static char *text, id[16];
static size_t used, room;
static char *given(const char *variable) { return getenv(variable) && *getenv(variable) ? getenv(variable) : 0; }
/* Say which file keeps the whole command from running, and why: a script is there although its interpreter is not. */
static void cannot(const char *path, int why) {
    static char head[4096];
    int file = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t size = file < 0 ? 0 : read(file, head, sizeof head - 1);
    char *interpreter = size > 2 && !memcmp(head, "#!", 2) ? strtok(head + 2, " \t\n") : 0;
    if (interpreter && !access(path, X_OK))
        dprintf(2, "%s: %s cannot be run by its interpreter %s: %s.\n", name, path, interpreter, strerror(why));
    else dprintf(2, "%s: %s cannot be executed: %s. %s.\n", name, path, strerror(why), ANEW);
    _exit(255);
}
static void become(int again) {
    static char path[8192], variable[64] = "LAVA_REQUEST_ID=";
    for (int i = 0; i < 16; i++) sprintf(variable + 16 + 2 * i, "%02x", id[i] & 255);
    if (again) putenv(variable);
    if (at_socket && !given("LAVA_SOCKET") && !given("LAVA_ENVDIR")) setenv("LAVA_SOCKET", at_socket, 1);
    if (kept >= 0) lseek(kept, 0, SEEK_SET), dup2(kept, 0);
    snprintf(path, sizeof path, "%s/%s", full ? full : "", name);
    execv(words[0] = path, words);
    cannot(path, errno);
}
static void grow(size_t more) {
    if (used + more > room && !(text = realloc(text, room = 2 * (used + more)))) become(0);
}
static void raw(const void *data, size_t size) { grow(size), memcpy(text + used, data, size), used += size; }
static void string(const char *data, size_t size) { raw(&(uint32_t){size}, 4), raw(data, size); }
static void word(const char *data) { string(data, strlen(data)); }
static void number(long value) { char digits[24]; string(digits, sprintf(digits, "%ld", value)); }
static int put(int to, const char *data, size_t size) {
    for (ssize_t done; size; data += done, size -= done)
        if ((done = to == agent ? send(to, data, size, MSG_NOSIGNAL) : write(to, data, size)) < 0) return -1;
    return 0;
}
static int frame(int kind, const char *data, size_t size) {
    unsigned char head[12] = {1, 0, 0, 0, kind};
    struct iovec both[] = {{head, 12}, {(char *)data, size}};
    memcpy(head + 8, &(uint32_t){size}, 4);
    ssize_t done = sendmsg(agent, &(struct msghdr){.msg_iov = both, .msg_iovlen = 2}, MSG_NOSIGNAL) - 12;
    return done < 0 || put(agent, data + done, size - done) ? -1 : 0;
}
static int take(char *data, size_t size) {
    for (ssize_t done; size; data += done, size -= done)
        if ((done = recv(agent, data, size, 0)) <= 0) return -1;
    return 0;
}
/* The next message, in ``text``; its size, or -1 if there is none any more. */
static long message(void) {
    unsigned char head[12];
    uint32_t size, credit = 16;
    for (;;) {
        if (take((char *)head, 12)) return -1;
        memcpy(&size, head + 8, 4), used = 0, grow(size + 1);
        if (take(text, size) || head[4] == END) return -1;
        if (head[4] != MESSAGE) continue;
        if (++taken == 16) taken = 0, frame(CREDIT, (char *)&credit, 4);
        text[size] = 0;
        return size;
    }
}
/* Add the beginning of a file to ``text``: "+" and its bytes, or "-". Standard input is kept for the whole command. */
static void content(int file, size_t limit) {
    ssize_t done = file || kept >= 0 ? 0 : (kept = memfd_create("input", MFD_CLOEXEC));
    size_t begin = used, end = used + 1 + limit;
    raw("+", 1);
    while (file >= 0 && done >= 0 && used < end) {
        size_t want = end - used < 1 << 16 ? end - used : 1 << 16;
        grow(want);
        if ((done = read(file, text + used, want)) <= 0 || (!file && put(kept, text + used, done) && (done = -1))) break;
        used += done;
    }
    if (file > 0) close(file);
    if (file < 0 || done < 0) used = begin, raw("-", 1);
}
static int opened(const char *path) { return open(path, O_RDONLY | O_CLOEXEC); }
static const char *kind_of(const char *path) {
    struct stat status;
    if (stat(path, &status)) return "-";
    return S_ISDIR(status.st_mode) ? "d" : !S_ISREG(status.st_mode) ? "-" : access(path, X_OK) ? "f" : "x";
}
/* Kinds of the files that the words name, where a submission will look at them: b for one in ELF's format. */
static void kinds(int count) {
    static char found[65];
    for (int i = 1; submits && i < count && i < (int)sizeof found; i++) {
        char head[4], *kind = found + i - 1;
        *kind = *words[i] == '-' ? '?' : *kind_of(words[i]);
        int file = *kind == 'x' ? opened(words[i]) : -1;
        if (file >= 0 && read(file, head, 4) == 4 && !memcmp(head, "\177ELF", 4)) *kind = 'b';
        if (file >= 0) close(file);
    }
    word(found);
}
/* Answer a question: K and R with four bytes of a limit and a path, I with a limit. */
static int answer(long size) {
    uint32_t limit = 0;
    char asked = text[0], *path = strdup(size > 5 ? text + 5 : "");
    memcpy(&limit, text + 1, size > 4 ? 4 : 0), used = 0;
    const char *kind = asked == 'K' ? kind_of(path) : "f";
    if (asked == 'K') raw(kind, 1);
    content(asked == 'I' ? 0 : strchr("fx", *kind) ? opened(path) : -1, limit);
    free(path);
    return frame(MESSAGE, text, used);
}
/* Pass on what comes; 1 if the command is to be run here, 0 if the agent has gone or does not know how far it came. */
static int carry(void) {
    for (long size; (size = message()) > 0;) {
        shown |= text[0] == 'O' || text[0] == 'E';
        switch (text[0]) {
        case 'O':
            if (put(1, text + 1, size - 1)) dprintf(2, "Cannot write the output: %s.\n", strerror(errno)), _exit(255);
            break;
        case 'E': put(2, text + 1, size - 1); break;
        case 'D': _exit((unsigned char)text[1]);
        case 'X': return 1;
        case 'K': case 'R': case 'I': if (answer(size)) return 0; break;
        default: return 0;
        }
    }
    return 0;
}
/* The current directory as the shell names it. */
static const char *directory(void) {
    static char here[8192];
    struct stat one, other;
    const char *logical = getenv("PWD");
    if (!getcwd(here, sizeof here)) become(0);
    int same = logical && logical[0] == '/' && !stat(".", &one) && !stat(logical, &other) &&
               one.st_dev == other.st_dev && one.st_ino == other.st_ino;
    return same ? logical : here;
}
static long columns(void) {
    struct winsize size = {0};
    char *text = getenv("COLUMNS"), *end = text;
    long found = text ? strtol(text, &end, 10) : 0;
    if (found > 0 && !*end) return found;
    if (ioctl(1, TIOCGWINSZ, &size)) ioctl(2, TIOCGWINSZ, &size);
    return size.ws_col ? size.ws_col : 80;
}
/* The file of settings that nearly every command looks at, as an answer; none if it is long. */
static void settings(void) {
    static char path[8192];
    char *place = given("LSF_ENVDIR");
    if (!place && !(place = given("LSF_CONFDIR")) && !(place = given("LAVA_ENVDIR"))) place = "/etc";
    snprintf(path, sizeof path, "%s/lsf.conf", place);
    size_t begin = used, size = strlen(path);
    word(path), raw("size", 4), content(opened(path), (1 << 16) + 1), size = used - begin - size - 8;
    if (size > (1 << 16) + 1) used = begin, word(""), word("");
    else memcpy(text + used - size - 4, &(uint32_t){size}, 4);
}
static void read_paths(void) {
    static char own[8192];
    ssize_t size = readlink("/proc/self/exe", own, sizeof own - 7);
    static const char GONE[] = " (deleted)"; /* another one was written in its place since this one was started */
    if (size < 0) dprintf(2, "%s: /proc/self/exe cannot be read: %s.\n", name, strerror(errno)), _exit(255);
    own[size] = 0;
    char *end = size >= (ssize_t)sizeof GONE ? own + size + 1 - sizeof GONE : own;
    if (!strcmp(end, GONE) && access(own, F_OK)) size = end - own;
    strcpy(own + size, ".paths");
    int file = open(own, O_RDONLY | O_CLOEXEC);
    if (file < 0 || (size = read(file, paths, sizeof paths - 1)) <= 0)
        dprintf(2, "%s: %s cannot be read: %s. %s.\n", name, own, size ? strerror(errno) : "It is empty", ANEW), _exit(255);
    close(file);
    full = strtok(paths, "\n"), at_socket = strtok(0, "\n");
}
static void patience(long seconds) {
    struct timeval most = {seconds, 0};
    for (int i = 0; i < 2; i++) setsockopt(agent, SOL_SOCKET, i ? SO_SNDTIMEO : SO_RCVTIMEO, &most, sizeof most);
}
int main(int count, char **argv) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    char padded[64];
    long mask;
    words = argv, name = strrchr(argv[0], '/') ? strrchr(argv[0], '/') + 1 : argv[0];
    read_paths(), snprintf(padded, sizeof padded, " %s ", name), submits = !!strstr(" bsub sbatch ", padded);
    for (int i = 0; i < 3; i++) if (fcntl(i, F_GETFD) < 0) become(0);
    char *path = given("LAVA_SOCKET") ? given("LAVA_SOCKET") : given("LAVA_ENVDIR") ? 0 : at_socket;
    if (!path || strlen(path) >= sizeof address.sun_path || getrandom(id, 16, 0) != 16) become(0);
    strcpy(address.sun_path, path);
    raw(&(uint16_t){sizeof METHOD - 1}, 2), raw(METHOD, sizeof METHOD - 1), string(VERSION, 1);
    number(isatty(0) | isatty(1) << 1 | isatty(2) << 2), umask(mask = umask(077)), number(mask), number(columns());
    string(id, 16), word(directory()), word(path), settings(), kinds(count), number(count), word(name);
    for (int i = 1; i < count; i++) word(argv[i]);
    for (char **entry = environ; *entry; entry++) if (strchr(*entry, '=')) word(*entry);
    if (used > MOST || (agent = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) < 0) become(0);
    patience(3);
    if (connect(agent, (struct sockaddr *)&address, sizeof address) || frame(OPEN, text, used)) become(0);
    if (message() != 1 || text[0] != 'A' || frame(MESSAGE, "G", 1)) become(0);
    patience(0);
    if (carry() || submits || !(shown || strstr(ONCE, padded))) become(1);
    return dprintf(2, "%s: the agent of this host ended before its answer: it is not known what was done.\n", name), 255;
}
