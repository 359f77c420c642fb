# One bash with its terminal: started, fed with lines, interrupted, reaped.
#
# The shell is the leader of a session of its own with the pseudo-terminal as its controlling
# terminal, and it stays the foreground group: job control is off, so everything it
# starts in the foreground shares its group and gets the same Ctrl-C.
package Shell;
use strict;
use warnings;
use Fcntl qw(O_RDWR O_NOCTTY O_NONBLOCK F_GETFL F_SETFL);
use POSIX qw(:termios_h setsid dup2 _exit);

use constant {
    CELL       => ($0 =~ m{\A(.*)/} ? $1 : '.') . '/cell.bash',
    BASH       => '/bin/bash',
    TIOCGPTN   => 0x80045430,
    TIOCSPTLCK => 0x40045431,
    TIOCSCTTY  => 0x540e,
    TIOCGPGRP  => 0x540f,
    START_TRIES => 100,
    START_WAIT  => 0.1,
};

# Lines the shell gets first. Names begin with __cloche so that they stay out of the way.
my $PREPARE = <<'BASH';
exec 2>/dev/null; set +m +o history +H; PS1= PS2= PROMPT_COMMAND=; unset HISTFILE MAILCHECK; shopt -u checkwinsize
__cloche_status() { builtin return "$1"; }
__cloche_set() {
if [[ -v $1 ]]; then __cloche_old[$1]=${!1}; [[ ${!1@a} == *x* ]] || __cloche_hidden[$1]=1; fi
builtin export -- "$1=$2"; }
__cloche_back() {
if [[ -v __cloche_old[$1] ]]; then builtin declare -g -- "$1=${__cloche_old[$1]}"
[[ -v __cloche_hidden[$1] ]] && builtin export -n -- "$1"; else builtin unset -v "$1"; fi
builtin unset -v "__cloche_old[$1]" "__cloche_hidden[$1]"; }
declare -gA __cloche_old=() __cloche_hidden=()
BASH

my $HELPERS = <<'BASH';
__cloche_show() { builtin printf '\036%s %s %s\036' NONCE "$1" "$(base64 -w0)" >TERMINAL; }
__cloche_begin() { builtin printf '\036%s begin %s\036' NONCE "$__cloche_serial"; }
display() { __cloche_show image; }
displayHTML() { __cloche_show html; }
displayJS() { __cloche_show js; }
BASH

sub new {
    my ($class) = @_;
    my $self = bless { nonce => nonce(), serial => 0 }, $class;
    $self->open_terminal;
    pipe my $read, my $write or die "a pipe for the shell: $!\n";
    $self->{commands} = $write;
    $self->{pid} = fork // die "the shell: $!\n";
    $self->become_bash($read) if !$self->{pid};
    close $read;
    $self->put($PREPARE);
    my $helpers = $HELPERS =~ s/NONCE/$self->{nonce}/gr =~ s/TERMINAL/$self->{name}/r;
    $self->put($helpers);
    $self->await;
    return $self;
}

sub nonce {
    open my $random, '<:raw', '/dev/urandom' or die "/dev/urandom: $!\n";
    sysread $random, my $bytes, 16;
    return unpack 'H*', $bytes;
}

# The slave stays open here, so that the terminal lives while no process of the shell holds it.
sub open_terminal {
    my ($self) = @_;
    my $master;
    sysopen $master, '/dev/ptmx', O_RDWR | O_NOCTTY
        or sysopen $master, '/dev/pts/ptmx', O_RDWR | O_NOCTTY
        or die "/dev/ptmx: $!\n";
    my $number = pack 'i', 0;
    ioctl($master, TIOCSPTLCK, $number) or die "unlock of the terminal: $!\n";
    ioctl($master, TIOCGPTN, $number) or die "number of the terminal: $!\n";
    $self->{name} = '/dev/pts/' . unpack 'i', $number;
    sysopen my $slave, $self->{name}, O_RDWR | O_NOCTTY or die "$self->{name}: $!\n";
    my $modes = POSIX::Termios->new;
    $modes->getattr(fileno $slave);
    $modes->setoflag($modes->getoflag & ~OPOST);
    $modes->setlflag($modes->getlflag & ~(ECHO | ECHOE | ECHOK | ECHONL));
    $modes->setattr(fileno $slave, TCSANOW);
    fcntl $master, F_SETFL, fcntl($master, F_GETFL, 0) | O_NONBLOCK;
    @$self{qw(terminal slave)} = ($master, $slave);
}

# The shell's standard error is the terminal until its first line: bash keeps a descriptor of the
# terminal it finds there. Without one it would open /dev/tty, which no checkpoint can hold.
sub become_bash {
    my ($self, $commands) = @_;
    setsid();
    ioctl($self->{slave}, TIOCSCTTY, 0);
    open my $null, '+<', '/dev/null' or _exit(126);
    dup2(fileno $commands, 0);
    dup2(fileno $null, 1);
    dup2(fileno $self->{slave}, 2);
    $SIG{$_} = 'DEFAULT' for qw(INT PIPE CHLD);
    my %quiet = (PAGER => 'cat', GIT_PAGER => 'cat', TERM => 'dumb', MANPAGER => 'cat', SYSTEMD_PAGER => 'cat');
    $ENV{$_} //= $quiet{$_} for keys %quiet;
    exec { +BASH } 'bash', '--norc', '--noprofile', '--noediting', '-i' or _exit(127);
}

# Waits until bash answers with its version.
sub await {
    my ($self) = @_;
    $self->put("builtin printf '\\036%s\\036' \"\$BASH_VERSION\" >$self->{name}\n");
    my $said = '';
    for (1 .. START_TRIES) {
        my $watched = '';
        vec($watched, fileno $self->{terminal}, 1) = 1;
        select $watched, undef, undef, START_WAIT;
        sysread $self->{terminal}, $said, 4096, length $said;
        ($self->{version}) = $said =~ /\x1e([0-9.]+)[^\x1e]*\x1e/ and return;
    }
    die "bash does not answer: $said\n";
}

# Bash reads its commands byte by byte, so a long cell fills the pipe: that is fine, it drains.
sub put {
    my ($self, $lines) = @_;
    while (length $lines) {
        my $done = syswrite $self->{commands}, $lines;
        if    (defined $done)   { substr $lines, 0, $done, '' }
        elsif (!$!{EINTR})      { return }
    }
}

sub quoted {
    my ($text) = @_;
    $text =~ s/'/'\\''/g;
    return "'$text'";
}

sub run {
    my ($self, $code, $status) = @_;
    $self->{serial}++;
    $self->put("__cloche_serial=$self->{serial} __cloche_last=$status __cloche_code=" . quoted($code) . "\n");
    $self->put('source ' . quoted(CELL) . " </dev/null >$self->{name} 2>&1\n");
    $self->report;
}

# Makes the shell report the end of the cell. An interrupt may fall on the very line
# that does so, hence it asks again; the first answer counts.
sub report {
    my ($self) = @_;
    $self->put("builtin printf '\\036$self->{nonce} end $self->{serial} %s\\036' \"\$?\" >$self->{name}\n");
}

# Names that bash cannot hold are skipped.
sub names {
    my ($env) = @_;
    return grep { /\A[A-Za-z_][A-Za-z0-9_]*\z/ && $env->{$_} !~ /\0/ } sort keys %$env;
}

sub set_env {
    my ($self, $is_for_good, $env) = @_;
    my $verb = $is_for_good ? 'builtin export --' : '__cloche_set';
    my $join = $is_for_good ? '='                 : ' ';
    $self->put(join '', map { "$verb $_$join" . quoted($env->{$_}) . "\n" } names($env));
}

# $RANDOM counts on from a seed that a copy of this shell has too; $SRANDOM asks the system each time.
sub renew {
    my ($self) = @_;
    open my $source, '<:raw', '/dev/urandom' or return;
    return if sysread($source, my $bytes, 4) != 4;
    $self->put('{ RANDOM=' . (unpack('N', $bytes) & 0x7fffffff) . "; } 2>/dev/null\n");
}

sub restore_env {
    my ($self, $env) = @_;
    $self->put(join '', map { "__cloche_back $_\n" } names($env));
}

sub change_directory {
    my ($self, $path) = @_;
    $self->put('builtin cd -- ' . quoted($path) . "\n");
}

sub foreground {
    my ($self) = @_;
    my $group = pack 'i', 0;
    return $self->{pid} if !ioctl($self->{terminal}, TIOCGPGRP, $group);
    return unpack('i', $group) || $self->{pid};
}

sub interrupt {
    my ($self) = @_;
    kill 'INT', -$self->foreground;
}

# Processes of the foreground group but the shell.
sub others {
    my ($self) = @_;
    my $group = $self->foreground;
    my @found;
    for my $file (glob '/proc/[0-9]*/stat') {
        open my $stat, '<', $file or next;
        my ($pid, $of) = (<$stat> // '') =~ /\A(\d+) \(.*\) [^ZX] \d+ (\d+)/s or next;
        push @found, $pid if $of == $group && $pid != $self->{pid};
    }
    return @found;
}

sub kill_all {
    my ($self) = @_;
    kill 'KILL', -$self->foreground;
    kill 'KILL', $self->{pid};
}

sub close {
    my ($self) = @_;
    CORE::close $self->{$_} for qw(terminal slave commands);
}

1;
