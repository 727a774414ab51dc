BEGIN
{
	y = (x = 5) + 1;
	printf("%d %d\n", x, y);
	w = !(v = 3);
	printf("%d %d\n", v, w);
	y = ((x = 7), 3) + 1;
	printf("%d %d\n", x, y);
	y = (x = 1) && 1;
	printf("%d %d\n", x, y);
	y = ((x = 9) ? 2 : 3) == 2;
	printf("%d %d\n", x, y);
	y = (-(x = 4) < 0 || (x = 8)) ^^ 0;
	printf("%d %d\n", x, y);
	exit(0);
}
