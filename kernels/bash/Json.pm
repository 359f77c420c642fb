# JSON for the protocol, on bytes: strings are UTF-8 inside and out, and bytes that are not are passed
# on as they are. A scalar reference is a token to be written as it is: \'true', \7. Smaller than the library module,
# and there where only the essential part of Perl is installed.
package Json;
use strict;
use warnings;

my %ESCAPE = ("\n" => '\n', "\r" => '\r', "\t" => '\t', '"' => '\"', '\\' => '\\\\');
my %PLAIN  = (n => "\n", r => "\r", t => "\t", b => "\b", f => "\f");

sub encode {
    my ($value) = @_;
    return 'null' if !defined $value;
    return $$value if ref $value eq 'SCALAR';
    return '{' . join(',', map { text($_) . ':' . encode($value->{$_}) } sort keys %$value) . '}'
        if ref $value eq 'HASH';
    return '[' . join(',', map { encode($_) } @$value) . ']' if ref $value eq 'ARRAY';
    return text($value);
}

sub text {
    my ($text) = @_;
    $text =~ s/([\x00-\x1f"\\\x7f])/$ESCAPE{$1} \/\/ sprintf '\\u%04x', ord $1/ge;
    return qq{"$text"};
}

sub decode {
    my ($json) = @_;
    my $value = value(\$json);
    die "JSON with something behind it\n" if $json !~ /\G\s*\z/gc;
    return $value;
}

sub value {
    my ($json) = @_;
    $$json =~ /\G\s*/gc;
    return string($json) if $$json =~ /\G"/gc;
    return object($json) if $$json =~ /\G\{/gc;
    return array($json)  if $$json =~ /\G\[/gc;
    return 0 + $1        if $$json =~ /\G(-?[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?)/gc;
    return 1             if $$json =~ /\Gtrue/gc;
    return 0             if $$json =~ /\Gfalse/gc;
    return undef         if $$json =~ /\Gnull/gc;
    die 'not JSON at byte ' . (pos($$json) // 0) . "\n";
}

sub object {
    my ($json) = @_;
    my %object;
    return \%object if $$json =~ /\G\s*\}/gc;
    while (1) {
        $$json =~ /\G\s*"/gc or die "JSON object without a name\n";
        my $name = string($json);
        $$json =~ /\G\s*:/gc or die "JSON object without a value\n";
        $object{$name} = value($json);
        next if $$json =~ /\G\s*,/gc;
        return \%object if $$json =~ /\G\s*\}/gc;
        die "JSON object without an end\n";
    }
}

sub array {
    my ($json) = @_;
    my @array;
    return \@array if $$json =~ /\G\s*\]/gc;
    while (1) {
        push @array, value($json);
        next if $$json =~ /\G\s*,/gc;
        return \@array if $$json =~ /\G\s*\]/gc;
        die "JSON array without an end\n";
    }
}

sub string {
    my ($json) = @_;
    my @parts;
    while (1) {
        push @parts, $1 if $$json =~ /\G([^"\\]+)/gc;
        return join '', @parts if $$json =~ /\G"/gc;
        if    ($$json =~ /\G\\u([0-9a-fA-F]{4})/gc) { push @parts, code_point($json, hex $1) }
        elsif ($$json =~ /\G\\(.)/gcs)              { push @parts, $PLAIN{$1} // $1 }
        else                                        { die "JSON string without an end\n" }
    }
}

sub code_point {
    my ($json, $code) = @_;
    if ($code >= 0xd800 && $code < 0xe000) {
        my $is_pair = $code < 0xdc00 && $$json =~ /\G\\u([dD][c-fC-F][0-9a-fA-F]{2})/gc;
        $code = $is_pair ? 0x10000 + (($code - 0xd800) << 10) + (hex($1) - 0xdc00) : 0xfffd;
    }
    my $character = chr $code;
    utf8::encode($character);
    return $character;
}

sub from_base64 {
    my ($text) = @_;
    $text =~ tr{A-Za-z0-9+/}{}cd;
    $text =~ tr{A-Za-z0-9+/}{ -_};
    my $bytes = '';
    while ($text =~ /(.{1,60})/gs) { $bytes .= unpack 'u', chr(32 + length($1) * 3 / 4) . $1 }
    return $bytes;
}

1;
