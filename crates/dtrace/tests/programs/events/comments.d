/* first */
#pragma D option quiet
BEGIN /* here */ /1 /* and */ == 1/ /* there */
{
	/* nothing; */
	printf("%d\n", 6 / /* two */ 2);
}
/* last */
