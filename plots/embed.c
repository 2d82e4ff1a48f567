/* Build-time helper: prints files as C arrays. usage: embed NAME FILE [NAME FILE ...] */
#include <stdio.h>

int main(int argc, char **argv)
{
    printf("#include \"plots/page_parts.h\"\n");
    for (int i = 1; i + 1 < argc; i += 2) {
        FILE *in = fopen(argv[i + 1], "rb");
        if (in == NULL) {
            perror(argv[i + 1]);
            return 1;
        }
        printf("const char %s[] = {", argv[i]);
        for (int c, n = 0; (c = getc(in)) != EOF; n++)
            printf("%s%d,", n % 24 == 0 ? "\n" : "", c > 127 ? c - 256 : c);
        printf("0};\n");
        fclose(in);
    }
    return ferror(stdout) != 0;
}
